// Colors of series and groups: distinguishable for color-blind readers, on light and dark backgrounds.

const LIGHT = [
  "#0c6a70",
  "#c2571a",
  "#6a4fb3",
  "#a8336a",
  "#5b7a12",
  "#2a63c4",
  "#8a6100",
  "#b3303a",
  "#3d7f52",
  "#6b6862",
];
const DARK = [
  "#4fc3bf",
  "#f0a266",
  "#b3a0f0",
  "#f08ab8",
  "#b3cf5e",
  "#82b0ff",
  "#e5c158",
  "#ff9089",
  "#86d19b",
  "#b5b1a8",
];

export function colours(theme: "light" | "dark"): string[] {
  return theme === "dark" ? DARK : LIGHT;
}

/** The i-th color, cyclically. */
export function colour(theme: "light" | "dark", position: number): string {
  const all = colours(theme);
  return all[((position % all.length) + all.length) % all.length] ?? "#888888";
}

/** "#0c6a70" -> [12, 106, 112]. */
export function rgb(hex: string): [number, number, number] {
  const number = Number.parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

// Viridis, at nine points.
const SCALE = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"].map(
  rgb,
);

/** A value from 0 to 1 as a color. */
export function scale(share: number): [number, number, number] {
  const position = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1);
  const low = Math.min(Math.floor(position), SCALE.length - 2);
  const at = (step: number, i: 0 | 1 | 2) => SCALE[step]?.[i] ?? 0;
  const between = (i: 0 | 1 | 2) => Math.round(at(low, i) + (at(low + 1, i) - at(low, i)) * (position - low));
  return [between(0), between(1), between(2)];
}
