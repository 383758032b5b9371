/** The response of /api/attention. */
export interface Attention {
  kind: "both" | "causal" | "cross";
  layers: number;
  heads: number;
  queries: string[];
  keys: string[];
  segments: number[];
  special: boolean[];
  scale: number;
  weights: number[][][][]; // layer, head, query, key: integers, scaled
}

/** The response of /api/attention/steps. */
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

/** One head with the visible tokens; special tokens may be hidden. */
export interface Head {
  queries: string[];
  keys: string[];
  rows: number[]; // indices of the visible queries
  columns: number[];
  weights: number[][];
  most: number;
  second: number; // where the second text of a pair begins; −1 without one
}

export function headOf(attention: Attention, layer: number, head: number, words: boolean): Head {
  const all = attention.weights[layer]?.[head] ?? [];
  const self = attention.kind !== "cross";
  const visible = (position: number) => !words || !attention.special[position];
  const columns = attention.keys.map((_, position) => position).filter(visible);
  const rows = attention.queries.map((_, position) => position).filter((position) => !self || visible(position));
  const weights = rows.map((row) => columns.map((column) => (all[row]?.[column] ?? 0) / attention.scale));
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

/** The initial selection: the largest weight between two words that are not adjacent. */
export function strongest(attention: Attention): { layer: number; head: number; query: number } {
  const result = { layer: 0, head: 0, query: Math.max(0, attention.special.indexOf(false)), worth: -1 };
  const cross = attention.kind === "cross";
  const isWord = (text = "") => /[\p{L}\p{N}]{2}/u.test(text) && text !== "[UNK]";
  attention.weights.forEach((heads, layer) =>
    heads.forEach((rows, head) =>
      rows.forEach((row, query) =>
        row.forEach((weight, key) => {
          const far =
            cross ||
            (Math.abs(query - key) > 1 &&
              !attention.special[query] &&
              attention.queries[query] !== attention.keys[key]);
          const words = isWord(attention.queries[query]) && isWord(attention.keys[key]) && !attention.special[key];
          const worth = weight * (cross ? 1 : 1 + Math.abs(query - key) / 10); // distant pairs are more informative
          if (worth > result.worth && far && words) Object.assign(result, { layer, head, query, worth });
        }),
      ),
    ),
  );
  return result;
}
