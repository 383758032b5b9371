/** The response of /api/latent: the latent codes of rows. */
export interface Space {
  dim: number;
  rows: number;
  columns: number;
  side: number | null; // side length if rows are square images
  center: number[];
  axes: number[][]; // two directions
  points: number[][];
  explained: number;
  mean: number[];
  low: number[];
  high: number[];
  labels: string[] | null; // of the points, if a label column is selected
  names: string[]; // columns that can be labels
}

export interface Cell {
  column: string;
  value: number | string | null;
  low: number | null;
  high: number | null;
  levels: [string, number][];
}

/** The projection of a code onto the plane. */
export function seen(space: Space, code: number[]): [number, number] {
  const along = (axis: number[] = []) =>
    axis.reduce((sum, part, position) => sum + part * ((code[position] ?? 0) - (space.center[position] ?? 0)), 0);
  return [along(space.axes[0]), along(space.axes[1])];
}

/** The code after a step on the plane; orthogonal components do not change. */
export function moved(space: Space, code: number[], x: number, y: number): number[] {
  return code.map(
    (number, position) => number + x * (space.axes[0]?.[position] ?? 0) + y * (space.axes[1]?.[position] ?? 0),
  );
}

/** The square of the plane with most points, with a margin. */
export function frame(space: Space): { x: [number, number]; y: [number, number] } {
  const side = (position: number): [number, number] => {
    const all = space.points.map((point) => point[position] ?? 0).sort((a, b) => a - b);
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
