import { rgb } from "./colours";

/** Of the page's variables, as it is shown now. */
export function tint(name: string): [number, number, number] {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return rgb(hex.length === 4 ? hex.replace(/[^#]/g, "$&$&") : hex); // the build writes #fff for #ffffff
}

/** Shares from 0 to 1 as pixels of a canvas, from the panel's colour to the accent, or another. */
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
      const place = 4 * (row * columns + column);
      for (let part = 0; part < 3; part++)
        image.data[place + part] = (low[part] ?? 0) + ((high[part] ?? 0) - (low[part] ?? 0)) * value;
      image.data[place + 3] = 255;
    }
  context.putImageData(image, 0, 0);
}

/** Numbers below and above 0 in one line: towards the second colour, towards the accent. */
export function paintSigned(canvas: HTMLCanvasElement, numbers: number[], most: number): void {
  const context = canvas.getContext("2d");
  if (!context || !numbers.length) return;
  [canvas.width, canvas.height] = [numbers.length, 1];
  const image = context.createImageData(numbers.length, 1);
  const [zero, below, above] = [tint("--panel"), tint("--second"), tint("--accent")];
  numbers.forEach((number, place) => {
    const share = Math.min(Math.abs(number) / (most || 1), 1);
    const end = number < 0 ? below : above;
    for (let part = 0; part < 3; part++)
      image.data[4 * place + part] = (zero[part] ?? 0) + ((end[part] ?? 0) - (zero[part] ?? 0)) * share;
    image.data[4 * place + 3] = 255;
  });
  context.putImageData(image, 0, 0);
}
