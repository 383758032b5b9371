/** What /api/attention tells. */
export interface Attention {
  kind: "both" | "causal" | "cross";
  layers: number;
  heads: number;
  queries: string[];
  keys: string[];
  segments: number[];
  marks: boolean[];
  whole: number;
  weights: number[][][][]; // layer, head, query, key: in parts of `whole`
}

/** What /api/attention/steps tells. */
export interface Steps {
  query: number[];
  keys: number[][];
  values: number[][];
  allowed: boolean[];
  scores: number[];
  scaled: number[];
  weights: number[];
  output: number[];
  dim: number;
}

/** One head, with the tokens that are shown: those that are no words may be left out. */
export interface Head {
  queries: string[];
  keys: string[];
  rows: number[]; // the numbers of the shown queries among all
  columns: number[];
  weights: number[][];
  most: number;
  second: number; // where the second text of a pair begins; −1 without one
}

export function headOf(attention: Attention, layer: number, head: number, words: boolean): Head {
  const all = attention.weights[layer]?.[head] ?? [];
  const self = attention.kind !== "cross";
  const kept = (place: number) => !words || !attention.marks[place];
  const columns = attention.keys.map((_, place) => place).filter(kept);
  const rows = attention.queries.map((_, place) => place).filter((place) => !self || kept(place));
  const weights = rows.map((row) => columns.map((column) => (all[row]?.[column] ?? 0) / attention.whole));
  return {
    queries: rows.map((row) => attention.queries[row] ?? ""),
    keys: columns.map((column) => attention.keys[column] ?? ""),
    rows,
    columns,
    weights,
    most: Math.max(1e-9, ...weights.flat()),
    second: attention.segments.length ? columns.findIndex((column) => attention.segments[column] === 1) : -1,
  };
}
