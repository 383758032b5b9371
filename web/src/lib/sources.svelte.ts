import { get, message } from "./api";
import { resource, type Resource } from "./resource.svelte";
import { route } from "./url.svelte";

/** A data file of the server. */
export interface Source {
  id: string;
  name: string;
  where: "here" | "root"; // uploaded or generated, or under --root
  path: string;
  bytes: number;
  records: boolean; // a table, not a text file
}

/** Some rows of a file. */
export interface Look {
  columns: string[];
  rows: string[][];
  text: string | null; // the text column
  offset: number;
  more: boolean;
}

class Sources {
  all = $state.raw<Source[]>([]);
  root = $state<string | null>(null);
  error = $state("");
  loaded = $state(false);

  async load(): Promise<void> {
    try {
      const result = await get<{ sources: Source[]; root: string | null }>("/api/data");
      [this.all, this.root, this.error] = [result.sources, result.root, ""];
    } catch (error) {
      this.error = message(error);
    }
    this.loaded = true;
  }

  /** The source that is selected in the URL. */
  get selected(): Source | undefined {
    return this.all.find((source) => source.id === route.get("data"));
  }
}

export const sources = new Sources();

const LONGEST = 40; // characters of a file name in suggested names

/** A suggested name for a model or index of the selected data. */
export function nameFor(what: string): string {
  const stem = (sources.selected?.name.split("/").at(-1)?.split(".")[0] ?? "")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "") // removes combining marks after decomposition
    .replace(/\W+/g, "-")
    .slice(0, LONGEST)
    .replace(/^[-_]+|[-_]+$/g, "");
  return [stem, what].filter(Boolean).join("-");
}

/** The columns in the URL that the selected data has; others are from other data. */
export function among(look: Look | undefined, names: string[]): string[] {
  return names.filter((name) => sources.selected?.records && look?.columns.includes(name));
}

/** A column of the selected data, stored in the URL; empty for none. */
export function columnParam(look: Resource<Look>, name: string): { value: string } {
  return {
    get value() {
      return among(look.data, route.all(name))[0] ?? "";
    },
    set value(value: string) {
      route.set({ [name]: value || null });
    },
  };
}

/** The columns and first rows of the selected data. Must be called during component initialization. */
export function columnsOfChosen(): Resource<Look> {
  return resource(
    () => (sources.selected ? { source: sources.selected.id, column: route.get("column") ?? "", count: 20 } : null),
    (query, signal) => get<Look>("/api/data/look", query, signal),
  );
}
