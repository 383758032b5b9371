import { rgb } from "./colours";

/** The current value of a CSS color variable. */
export function tint(name: string): [number, number, number] {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return rgb(hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex); // the build shortens #ffffff to #fff
}

/** Paints values from 0 to 1 on a canvas, from the panel color to the accent or another color. */
export function paint(
  canvas: HTMLCanvasElement,
  rows: number,
  columns: number,
  share: (row: number, column: number) => number,
  most = "--accent",
): void {
  const context = canvas.getContext("2d");
  if (!context || !rows || !columns) return;
  [canvas.width, canvas.height] = [columns, rows];
  const image = context.createImageData(columns, rows);
  const [low, high] = [tint("--panel"), tint(most)];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) {
      const value = Math.min(Math.max(share(row, column), 0), 1);
      const position = 4 * (row * columns + column);
      for (let part = 0; part < 3; part++)
        image.data[position + part] = (low[part] ?? 0) + ((high[part] ?? 0) - (low[part] ?? 0)) * value;
      image.data[position + 3] = 255;
    }
  context.putImageData(image, 0, 0);
}

/** Paints signed values in one row: negative in the second color, positive in the accent. */
export function paintSigned(canvas: HTMLCanvasElement, numbers: number[], most: number): void {
  const context = canvas.getContext("2d");
  if (!context || !numbers.length) return;
  [canvas.width, canvas.height] = [numbers.length, 1];
  const image = context.createImageData(numbers.length, 1);
  const [zero, below, above] = [tint("--panel"), tint("--second"), tint("--accent")];
  numbers.forEach((number, position) => {
    const share = Math.min(Math.abs(number) / (most || 1), 1);
    const end = number < 0 ? below : above;
    for (let part = 0; part < 3; part++)
      image.data[4 * position + part] = (zero[part] ?? 0) + ((end[part] ?? 0) - (zero[part] ?? 0)) * share;
    image.data[4 * position + 3] = 255;
  });
  context.putImageData(image, 0, 0);
}
