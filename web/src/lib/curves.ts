import { colour } from "./colours";
import { human } from "./format";
import { background } from "./save";

export interface Curve {
  label: string;
  x: number[];
  y: (number | null)[];
  colour?: number; // index in the palette
  dashed?: boolean;
}

interface Frame {
  title: string;
  x: string;
  y: string;
  logX: boolean;
  logY: boolean;
  width: number;
  height: number;
}

/** The curves of a chart as SVG. */
export function curvesSvg(curves: Curve[], frame: Frame, theme: "light" | "dark"): string {
  const { width, height } = frame;
  const [left, right, top, bottom] = [70, 20, 46, 52];
  const style = getComputedStyle(document.documentElement);
  const [ink, muted, line] = ["--ink", "--muted", "--line"].map((name) => style.getPropertyValue(name).trim());
  const across = axis(
    curves.flatMap((curve) => curve.x),
    frame.logX,
    left,
    width - right,
  );
  const up = axis(
    curves.flatMap((curve) => curve.y.filter((value) => value !== null)),
    frame.logY,
    height - bottom,
    top,
  );
  const text = (x: number, y: number, content: string, more = "") =>
    `<text x="${x}" y="${y}" font-family="Inter, sans-serif" font-size="12" fill="${muted}" ${more}>${escaped(content)}</text>`;
  const parts = [
    `<rect width="${width}" height="${height}" fill="${background()}"/>`,
    text(left, 24, frame.title)
      .replace('font-size="12"', `font-size="16" font-weight="600"`)
      .replace(`fill="${muted}"`, `fill="${ink}"`),
    ...up.ticks.flatMap((tick) => [
      `<path d="M${left} ${up.at(tick)}H${width - right}" stroke="${line}"/>`,
      text(left - 8, up.at(tick) + 4, human(tick), 'text-anchor="end"'),
    ]),
    ...across.ticks.map((tick) => text(across.at(tick), height - bottom + 18, human(tick), 'text-anchor="middle"')),
    text((left + width - right) / 2, height - 10, frame.x, 'text-anchor="middle"'),
    text(
      16,
      (top + height - bottom) / 2,
      frame.y,
      `text-anchor="middle" transform="rotate(-90 16 ${(top + height - bottom) / 2})"`,
    ),
  ];
  curves.forEach((curve, position) => {
    const points = curve.x.flatMap((x, i) => {
      const y = curve.y[i];
      return y === null || y === undefined ? [] : `${across.at(x).toFixed(1)},${up.at(y).toFixed(1)}`;
    });
    const tint = colour(theme, curve.colour ?? position);
    const dash = curve.dashed ? ' stroke-dasharray="5 5"' : "";
    parts.push(`<polyline points="${points.join(" ")}" fill="none" stroke="${tint}" stroke-width="2"${dash}/>`);
    parts.push(
      text(width - right, 24 + 16 * position, curve.label, 'text-anchor="end"').replace(
        `fill="${muted}"`,
        `fill="${tint}"`,
      ),
    );
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${parts.join("")}</svg>`;
}

function axis(values: number[], log: boolean, from: number, to: number) {
  const seen = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  const turn = (value: number) => (log ? Math.log10(value) : value);
  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (const value of seen) [low, high] = [Math.min(low, turn(value)), Math.max(high, turn(value))];
  if (!seen.length) [low, high] = [0, 1];
  if (low === high) high = low + 1;
  const at = (value: number) => from + ((turn(value) - low) / (high - low)) * (to - from);
  const ticks: number[] = [];
  if (log) for (let power = Math.ceil(low); power <= high; power++) ticks.push(10 ** power);
  else {
    const rough = (high - low) / 5;
    const size = 10 ** Math.floor(Math.log10(rough));
    const step = size * ([1, 2, 5, 10].find((one) => one * size >= rough) ?? 10);
    for (let tick = Math.ceil(low / step) * step; tick <= high + step / 1e6; tick += step)
      ticks.push(Number(tick.toPrecision(12)));
  }
  return { at, ticks };
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
