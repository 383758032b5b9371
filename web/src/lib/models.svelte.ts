import { get, message } from "./api";
import { route } from "./url.svelte";

/** A model of the server. `can` says what it does: vectors, embeds, attends, contextual, fills, generates, answers, … */
export interface Model {
  name: string;
  method: string | null; // none for a file of vectors
  kind: string | null; // of data it learned from
  summary: string; // in a few words
  can: string[];
  tables: Record<string, { rows: number; dim: number }>; // of vectors
  options: Record<string, unknown>;
  path: string; // as the command line wants it
  error?: string; // why it can't be opened
}

class Models {
  all = $state.raw<Model[]>([]);
  indexes = $state.raw<string[]>([]);
  error = $state("");
  loaded = $state(false);

  async load(): Promise<void> {
    try {
      const found = await get<{ models: Model[]; indexes: string[] }>("/api/models");
      [this.all, this.indexes, this.error] = [found.models, found.indexes, ""];
    } catch (error) {
      this.error = message(error);
    }
    this.loaded = true;
  }

  /** Those that do `what` (one of several where several are given). */
  that(what: string | string[]): Model[] {
    return this.all.filter((model) => [what].flat().some((one) => model.can.includes(one)));
  }

  /** Of those that do `what`, the ones chosen in the address; the first where none is. */
  chosen(what: string | string[]): Model[] {
    const fit = this.that(what);
    const named = route.all("model").flatMap((name) => fit.find((model) => model.name === name) ?? []);
    return named.length ? named : fit.slice(0, 1);
  }
}

export const models = new Models();
