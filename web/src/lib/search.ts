import type { Cell } from "./save";

export interface ColumnOf {
  name: string;
  written: string; // as written in a filter
  kind: "text" | "number";
  values?: string[];
  low?: number | null;
  high?: number | null;
}

/** An index in the response of /api/indexes. */
export interface Index {
  name: string;
  path: string;
  rows: number;
  dim: number;
  method: string | null; // of its model
  model: string | null; // path of the model
  modes: string[];
  columns: ColumnOf[];
  error?: string; // why it cannot be loaded
}

export interface Hit {
  key: string;
  score: number;
  text: string;
  attributes: Record<string, Cell>;
  spans: { start: number; end: number; kind: "same" | "near" }[];
  contributions: { query: string; text: string; share: number }[];
}

const LEAD = 60; // characters before the first highlight of a long text
const SEEN = 280; // approximate visible length of a text

/** A text in highlighted and plain segments. The server counts code points, JavaScript UTF-16 units. */
export function parts(hit: Hit): { text: string; kind: string }[] {
  const letters = [...hit.text];
  const cut = (begin: number, end?: number) => letters.slice(begin, end).join("");
  const first = hit.spans[0]?.end ?? 0;
  const begin = first > SEEN ? letters.indexOf(" ", first - LEAD) + 1 || first - LEAD : 0; // some scripts do not use spaces
  const result: { text: string; kind: string }[] = begin ? [{ text: "…", kind: "" }] : [];
  let at = begin && Math.min(begin, hit.spans[0]?.start ?? 0);
  for (const mark of hit.spans) {
    result.push({ text: cut(at, mark.start), kind: "" }, { text: cut(mark.start, mark.end), kind: mark.kind });
    at = mark.end;
  }
  return [...result, { text: cut(at), kind: "" }].filter((piece) => piece.text);
}
