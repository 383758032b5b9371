import { get, message } from "./api";
import { resource, type Resource } from "./resource.svelte";
import { route } from "./url.svelte";

/** A file of data that the server may read. */
export interface Source {
  id: string;
  name: string;
  where: "here" | "root"; // dropped or made here, or found under --root
  path: string;
  bytes: number;
  records: boolean; // rows with columns; else a text
}

/** Some of a file's rows. */
export interface Look {
  columns: string[];
  rows: string[][];
  text: string | null; // the column that is read as the text
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
      const found = await get<{ sources: Source[]; root: string | null }>("/api/data");
      [this.all, this.root, this.error] = [found.sources, found.root, ""];
    } catch (error) {
      this.error = message(error);
    }
    this.loaded = true;
  }

  /** The one in the address. */
  get chosen(): Source | undefined {
    return this.all.find((source) => source.id === route.get("data"));
  }
}

export const sources = new Sources();

const LONGEST = 40; // letters of a file's name in the names of what is made of it

/** What a model or an index of the chosen data may be called, by letters that names have. */
export function nameFor(what: string): string {
  const stem = (sources.chosen?.name.split("/").at(-1)?.split(".")[0] ?? "")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "") // ö is o and two dots
    .replace(/\W+/g, "-")
    .slice(0, LONGEST)
    .replace(/^[-_]+|[-_]+$/g, "");
  return [stem, what].filter(Boolean).join("-");
}

/** Of columns that an address names, those that the chosen data has: others are left from other data. */
export function among(look: Look | undefined, names: string[]): string[] {
  return names.filter((name) => sources.chosen?.records && look?.columns.includes(name));
}

/** One column of the chosen data, kept in the address; empty for none. */
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

/** The first rows of the chosen data: what columns there are. Called while a component starts. */
export function columnsOfChosen(): Resource<Look> {
  return resource(
    () => (sources.chosen ? { source: sources.chosen.id, column: route.get("column") ?? "", count: 20 } : null),
    (query, signal) => get<Look>("/api/data/look", query, signal),
  );
}
