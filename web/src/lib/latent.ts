/** What /api/latent tells: where rows lie in a model's space of codes. */
export interface Space {
  dim: number;
  rows: number;
  columns: number;
  side: number | null; // rows are square pictures of so many pixels a side
  center: number[];
  axes: number[][]; // two directions
  points: number[][];
  explained: number;
  mean: number[];
  low: number[];
  high: number[];
  labels: string[] | null; // of the points, where data with a column of labels was chosen
  names: string[]; // columns that may be labels
}

export interface Cell {
  column: string;
  value: number | string | null;
  low: number | null;
  high: number | null;
  levels: [string, number][];
}

/** Where a code is seen on the plane. */
export function seen(space: Space, code: number[]): [number, number] {
  const along = (axis: number[] = []) =>
    axis.reduce((sum, part, place) => sum + part * ((code[place] ?? 0) - (space.center[place] ?? 0)), 0);
  return [along(space.axes[0]), along(space.axes[1])];
}

/** The code after a step on the plane: what the plane does not show stays as it is. */
export function moved(space: Space, code: number[], x: number, y: number): number[] {
  return code.map((number, place) => number + x * (space.axes[0]?.[place] ?? 0) + y * (space.axes[1]?.[place] ?? 0));
}

/** The square of the plane that holds most points, with some room around. */
export function frame(space: Space): { x: [number, number]; y: [number, number] } {
  const side = (place: number): [number, number] => {
    const all = space.points.map((point) => point[place] ?? 0).sort((a, b) => a - b);
    const at = (share: number) => all[Math.min(all.length - 1, Math.floor(share * all.length))] ?? 0;
    return [at(0.005), at(0.995)];
  };
  const [x, y] = [side(0), side(1)];
  const half = Math.max(x[1] - x[0], y[1] - y[0], 1e-6) * 0.56;
  const around = ([low, high]: [number, number]): [number, number] => [
    (low + high) / 2 - half,
    (low + high) / 2 + half,
  ];
  return { x: around(x), y: around(y) };
}
