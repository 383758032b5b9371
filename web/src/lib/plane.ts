// Geometry of points: projection to the screen, nearest point, points inside a lasso. Plain numbers,
// so that 100,000 points are fast.

export interface Camera {
  x: number; // center of the view
  y: number;
  zoom: number; // log2 of pixels per unit
  width: number;
  height: number;
}

export function project(camera: Camera, x: number, y: number): [number, number] {
  const scale = 2 ** camera.zoom;
  return [camera.width / 2 + (x - camera.x) * scale, camera.height / 2 - (y - camera.y) * scale];
}

export function unproject(camera: Camera, across: number, down: number): [number, number] {
  const scale = 2 ** camera.zoom;
  return [camera.x + (across - camera.width / 2) / scale, camera.y - (down - camera.height / 2) / scale];
}

const MARGIN = 1.1;
const SAMPLE = 20_000; // points sampled for the initial view

/** The view that shows the central `share` of the points along each axis. */
export function framed(
  xy: Float32Array,
  share: number,
  width: number,
  height: number,
): { target: [number, number]; zoom: number } {
  const step = share < 1 ? Math.ceil(xy.length / 2 / SAMPLE) : 1;
  const [x, y] = [0, 1].map((axis) => {
    const values = Float32Array.from(
      { length: Math.ceil(xy.length / 2 / step) },
      (_, row) => xy[2 * step * row + axis] ?? 0,
    ).sort();
    const left = Math.floor(((1 - share) / 2) * (values.length - 1));
    const [low, high] = [values[left] ?? 0, values[values.length - 1 - left] ?? 0];
    return { middle: (low + high) / 2, size: Math.max(1e-3, MARGIN * (high - low)) };
  }) as [{ middle: number; size: number }, { middle: number; size: number }];
  return { target: [x.middle, y.middle], zoom: Math.log2(Math.max(40, Math.min(width / x.size, height / y.size))) };
}

const CELLS = 256;

/** A grid index of rows over the square from −1 to 1. */
export class Grid {
  #starts = new Uint32Array(CELLS * CELLS + 1);
  #rows: Uint32Array;

  constructor(readonly xy: Float32Array) {
    const count = xy.length / 2;
    this.#rows = new Uint32Array(count);
    const cells = new Uint32Array(count);
    for (let row = 0; row < count; row++) {
      const cell = position(xy[2 * row + 1] ?? 0) * CELLS + position(xy[2 * row] ?? 0);
      cells[row] = cell;
      this.#starts[cell + 1] = (this.#starts[cell + 1] ?? 0) + 1;
    }
    for (let cell = 0; cell < CELLS * CELLS; cell++)
      this.#starts[cell + 1] = (this.#starts[cell + 1] ?? 0) + (this.#starts[cell] ?? 0);
    const filled = this.#starts.slice();
    for (let row = 0; row < count; row++) {
      const cell = cells[row] ?? 0;
      const spot = filled[cell] ?? 0;
      this.#rows[spot] = row;
      filled[cell] = spot + 1;
    }
  }

  /** An upper estimate of the number of rows in a rectangle. */
  count(left: number, bottom: number, right: number, top: number): number {
    let sum = 0;
    for (let down = position(bottom); down <= position(top); down++)
      sum +=
        (this.#starts[down * CELLS + position(right) + 1] ?? 0) - (this.#starts[down * CELLS + position(left)] ?? 0);
    return sum;
  }

  /** The rows in a rectangle, unordered. */
  *within(left: number, bottom: number, right: number, top: number): Generator<number> {
    for (let down = position(bottom); down <= position(top); down++) {
      const first = this.#starts[down * CELLS + position(left)] ?? 0;
      const last = this.#starts[down * CELLS + position(right) + 1] ?? 0;
      for (let spot = first; spot < last; spot++) {
        const row = this.#rows[spot] ?? 0;
        const [x, y] = [this.xy[2 * row] ?? 0, this.xy[2 * row + 1] ?? 0];
        if (x >= left && x <= right && y >= bottom && y <= top) yield row;
      }
    }
  }

  /** The nearest row to a position within `reach`; −1 for none. */
  nearest(x: number, y: number, reach: number): number {
    let [best, least] = [-1, reach * reach];
    for (const row of this.within(x - reach, y - reach, x + reach, y + reach)) {
      const [dx, dy] = [(this.xy[2 * row] ?? 0) - x, (this.xy[2 * row + 1] ?? 0) - y];
      const distance = dx * dx + dy * dy;
      if (distance <= least) [best, least] = [row, distance];
    }
    return best;
  }
}

function position(coordinate: number): number {
  return Math.min(CELLS - 1, Math.max(0, Math.floor(((coordinate + 1) / 2) * CELLS)));
}

/** The rows inside a polygon. */
export function inside(xy: Float32Array, corners: [number, number][]): number[] {
  const result: number[] = [];
  const across = corners.map(([x]) => x);
  const up = corners.map(([, y]) => y);
  const [left, right, bottom, top] = [Math.min(...across), Math.max(...across), Math.min(...up), Math.max(...up)];
  for (let row = 0; row < xy.length / 2; row++) {
    const [x, y] = [xy[2 * row] ?? 0, xy[2 * row + 1] ?? 0];
    if (x < left || x > right || y < bottom || y > top) continue;
    let odd = false; // parity of the crossings of a ray to the right
    for (let here = 0, before = corners.length - 1; here < corners.length; before = here++) {
      const [ax, ay] = corners[here] ?? [0, 0];
      const [bx, by] = corners[before] ?? [0, 0];
      if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
    }
    if (odd) result.push(row);
  }
  return result;
}

/** Moves a label minimally so that it fits inside; labels completely outside stay there. */
function within(at: number, half: number, size: number): number {
  return at < 0 || at > size ? at : Math.min(size - half - 4, Math.max(half + 4, at));
}

export interface Named {
  name: string;
  x: number;
  y: number;
  colour: string;
}

/** Labels of groups in pixels: overlapping ones are moved vertically, those at the edge inward. */
export function apart(names: Named[], camera: Camera, wide: (name: string) => number, high = 18): Named[] {
  const placed: (Named & { half: number })[] = [];
  for (const one of names) {
    const [x, y] = project(camera, one.x, one.y);
    const half = wide(one.name) / 2;
    const across = within(x, half, camera.width);
    const free = (down: number) =>
      placed.every((other) => Math.abs(other.y - down) >= high || Math.abs(other.x - across) >= half + other.half + 6);
    const tries = Array.from(
      { length: 2 * names.length },
      (_, turn) => y + (turn % 2 ? -1 : 1) * Math.ceil(turn / 2) * high,
    );
    const down = tries.find((down) => down > high && down < camera.height - 4 && free(down)) ?? y;
    placed.push({ ...one, x: across, y: down, half });
  }
  return placed;
}

const LOOKED_AT = 2500; // visible rows that are considered for labels

/** The first rows in a rectangle, sorted. */
function firstWithin(grid: Grid, left: number, bottom: number, right: number, top: number): number[] {
  if (grid.count(left, bottom, right, top) <= 2 * LOOKED_AT)
    return [...grid.within(left, bottom, right, top)].sort((a, b) => a - b).slice(0, LOOKED_AT);
  const result: number[] = [];
  for (let row = 0; row < grid.xy.length / 2 && result.length < LOOKED_AT; row++) {
    const [x, y] = [grid.xy[2 * row] ?? 0, grid.xy[2 * row + 1] ?? 0];
    if (x >= left && x <= right && y >= bottom && y <= top) result.push(row);
  }
  return result;
}

export interface Label {
  row: number;
  x: number;
  y: number;
}

/** The visible rows whose labels fit without overlap: `before` first, then (unless these are all) the
 * first rows, which are the most frequent. */
export function labels(
  grid: Grid,
  camera: Camera,
  keys: string[],
  before: number[],
  all: boolean,
  most: number,
): Label[] {
  const [left, top] = unproject(camera, 0, 0);
  const [right, bottom] = unproject(camera, camera.width, camera.height);
  const others = all ? firstWithin(grid, left, bottom, right, top) : [];
  const rows = new Set([...before, ...others]);
  const taken = new Set<number>(); // occupied cells of the screen; a label is 12 pixels high
  const [wide, high, tall] = [14, 6, 3];
  const result: Label[] = [];
  for (const row of rows) {
    if (result.length >= most) break;
    const [at, y] = project(camera, grid.xy[2 * row] ?? 0, grid.xy[2 * row + 1] ?? 0);
    const letters = Math.min(40, (keys[row] ?? "").length) * 6.6;
    const x = within(at, letters / 2, camera.width); // labels at the edge are moved inward
    const half = Math.ceil((letters + 14) / wide / 2);
    const cells: number[] = [];
    for (let line = Math.round(y / high); line < Math.round(y / high) + tall; line++)
      for (let column = Math.round(x / wide) - half; column <= Math.round(x / wide) + half; column++)
        cells.push(line * 10_000 + column);
    if (cells.some((cell) => taken.has(cell))) continue;
    for (const cell of cells) taken.add(cell);
    result.push({ row, x, y });
  }
  return result;
}
