import { get, message } from "./api";
import { route } from "./url.svelte";

/** A model of the server. `can` are its abilities: vectors, embeds, attends, contextual, fills, generates, answers, … */
export interface Model {
  name: string;
  method: string | null; // null for a file of vectors
  data: string | null; // the type of its training data
  summary: string; // short description
  can: string[];
  tables: Record<string, { rows: number; dim: number }>; // vector tables
  options: Record<string, unknown>;
  path: string; // for command lines
  error?: string; // why it cannot be loaded
}

class Models {
  all = $state.raw<Model[]>([]);
  indexes = $state.raw<string[]>([]);
  error = $state("");
  loaded = $state(false);

  async load(): Promise<void> {
    try {
      const result = await get<{ models: Model[]; indexes: string[] }>("/api/models");
      [this.all, this.indexes, this.error] = [result.models, result.indexes, ""];
    } catch (error) {
      this.error = message(error);
    }
    this.loaded = true;
  }

  /** The models with an ability, or with one of several. */
  that(what: string | string[]): Model[] {
    return this.all.filter((model) => [what].flat().some((one) => model.can.includes(one)));
  }

  /** The models with an ability that are selected in the URL; by default the first. */
  selected(what: string | string[]): Model[] {
    const fit = this.that(what);
    const named = route.all("model").flatMap((name) => fit.find((model) => model.name === name) ?? []);
    return named.length ? named : fit.slice(0, 1);
  }
}

export const models = new Models();
