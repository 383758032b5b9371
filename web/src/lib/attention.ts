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

/** Where to look first: the strongest look of one word at another that is not its neighbour. */
export function strongest(attention: Attention): { layer: number; head: number; query: number } {
  const found = { layer: 0, head: 0, query: Math.max(0, attention.marks.indexOf(false)), worth: -1 };
  const cross = attention.kind === "cross";
  const isWord = (text = "") => /[\p{L}\p{N}]{2}/u.test(text) && text !== "[UNK]";
  attention.weights.forEach((heads, layer) =>
    heads.forEach((rows, head) =>
      rows.forEach((row, query) =>
        row.forEach((weight, key) => {
          const far =
            cross ||
            (Math.abs(query - key) > 1 && !attention.marks[query] && attention.queries[query] !== attention.keys[key]);
          const words = isWord(attention.queries[query]) && isWord(attention.keys[key]) && !attention.marks[key];
          const worth = weight * (cross ? 1 : 1 + Math.abs(query - key) / 10); // a far look tells more than a near one
          if (worth > found.worth && far && words) Object.assign(found, { layer, head, query, worth });
        }),
      ),
    ),
  );
  return found;
}
