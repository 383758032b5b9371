import type { Cell } from "./save";

export interface ColumnOf {
  name: string;
  written: string; // as a condition has it
  kind: "text" | "number";
  values?: string[];
  low?: number | null;
  high?: number | null;
}

/** What /api/indexes tells of one. */
export interface Index {
  name: string;
  path: string;
  rows: number;
  dim: number;
  method: string | null; // of the model that made it
  model: string | null; // where that lies
  modes: string[];
  columns: ColumnOf[];
  error?: string; // why it can't be opened
}

export interface Hit {
  key: string;
  score: number;
  text: string;
  attributes: Record<string, Cell>;
  marks: { start: number; end: number; kind: "same" | "near" }[];
  because: { query: string; text: string; share: number }[];
}

const LEAD = 60; // letters shown before the first mark of a long text
const SEEN = 280; // letters of a text that are in sight, about

/** A text in pieces, marked or not, from where the marks begin. The server counts characters, JavaScript halves of some. */
export function pieces(hit: Hit): { text: string; kind: string }[] {
  const letters = [...hit.text];
  const cut = (begin: number, end?: number) => letters.slice(begin, end).join("");
  const first = hit.marks[0]?.end ?? 0;
  const begin = first > SEEN ? letters.indexOf(" ", first - LEAD) + 1 || first - LEAD : 0; // some scripts have no spaces
  const found: { text: string; kind: string }[] = begin ? [{ text: "…", kind: "" }] : [];
  let at = begin && Math.min(begin, hit.marks[0]?.start ?? 0);
  for (const mark of hit.marks) {
    found.push({ text: cut(at, mark.start), kind: "" }, { text: cut(mark.start, mark.end), kind: mark.kind });
    at = mark.end;
  }
  return [...found, { text: cut(at), kind: "" }].filter((piece) => piece.text);
}
