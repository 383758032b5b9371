// Saves figures and tables as files.

import { tellEscapes } from "./notice.svelte";

export function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export type Cell = string | number | boolean | null | undefined;

/** Text that a spreadsheet would interpret as a formula (the same rule as in server/workbench/exporting.py), except numbers. */
const formula = (text: string) =>
  /^[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text);

/** Saves a CSV for spreadsheets: text that would be interpreted as a formula gets a leading apostrophe. */
export function saveCsv(name: string, header: string[], rows: Cell[][]): void {
  let escapes = 0;
  const field = (value: Cell) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && formula(text)) {
      text = `'${text}`;
      escapes++;
    }
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = [header, ...rows].map((row) => row.map(field).join(","));
  download(name, new Blob([`${lines.join("\r\n")}\r\n`], { type: "text/csv;charset=utf-8" }));
  tellEscapes(name, escapes);
}

const SHOWN = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-size",
  "font-weight",
  "font-style",
  "font-family",
  "text-anchor",
  "dominant-baseline",
  "letter-spacing",
  "visibility",
  "display",
];

/** A standalone SVG: computed styles become attributes, and the background is painted. */
export function svgText(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const from = [svg, ...svg.querySelectorAll("*")];
  const to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((element, position) => {
    const style = getComputedStyle(element);
    for (const name of SHOWN) to[position]?.setAttribute(name, style.getPropertyValue(name));
    to[position]?.removeAttribute("class");
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  const box = svg.viewBox.baseVal;
  const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  paper.setAttribute("x", String(box.width ? box.x : 0));
  paper.setAttribute("y", String(box.width ? box.y : 0));
  paper.setAttribute("width", String(box.width || width));
  paper.setAttribute("height", String(box.height || height));
  paper.setAttribute("fill", background());
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
}

export function background(): string {
  return getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
}

export async function svgToPng(svg: SVGSVGElement): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svgText(svg)], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    const { width, height } = svg.getBoundingClientRect();
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await canvasBlob(canvas);
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** A canvas with the page's background instead of transparency. */
export async function canvasToPng(canvas: HTMLCanvasElement): Promise<Blob> {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext("2d");
  if (context) {
    context.fillStyle = background();
    context.fillRect(0, 0, copy.width, copy.height);
    context.drawImage(canvas, 0, 0);
  }
  return canvasBlob(copy);
}

function canvasBlob(canvas: HTMLCanvasElement): Promise<Blob> {
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The image cannot be created."))), "image/png"),
  );
}
