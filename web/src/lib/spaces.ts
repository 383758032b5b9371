/** A space for maps: a vector table of a model, or an index. */
export interface Space {
  of: string;
  name: string;
  table: string;
  rows: number;
  dim: number;
  path: string;
}

/** The response of /api/map/colour: a value per point. */
export interface Tint {
  kind: "category" | "number";
  labels: string[];
  sizes: number[];
  label: string;
  low: number;
  high: number;
  log: boolean; // whether values are decimal logarithms
  values: string; // base64 of uint8 indices into `labels`, or of float32 numbers
}

export interface Point {
  row: number | null; // null: not on the map
  key: string;
  count?: number;
  text?: string;
  attributes?: Record<string, unknown>;
  score?: number;
}
