/** Something that can be drawn: a table of a model, or an index. */
export interface Space {
  of: string;
  name: string;
  table: string;
  rows: number;
  dim: number;
  path: string;
}

/** What /api/map/colour tells: a value for each point. */
export interface Tint {
  kind: "category" | "number";
  labels: string[];
  sizes: number[];
  label: string;
  low: number;
  high: number;
  log: boolean; // whether numbers are logarithms, to the base of 10
  values: string; // base64 of uint8 places in `labels`, or of float32 numbers
}

export interface Point {
  row: number | null; // null: not among the points
  key: string;
  count?: number;
  text?: string;
  attributes?: Record<string, unknown>;
  score?: number;
}
