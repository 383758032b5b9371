// Series and groups: told apart by eyes that see red and green alike, readable on light and on dark.

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

/** The i-th colour, round and round. */
export function colour(theme: "light" | "dark", place: number): string {
  const all = colours(theme);
  return all[((place % all.length) + all.length) % all.length] ?? "#888888";
}

/** "#0c6a70" -> [12, 106, 112]. */
export function rgb(hex: string): [number, number, number] {
  const number = Number.parseInt(hex.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

// From little to much: viridis, at nine places.
const SCALE = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"].map(
  rgb,
);

/** A share from 0 to 1 as a colour. */
export function scale(share: number): [number, number, number] {
  const place = Math.min(Math.max(share, 0), 1) * (SCALE.length - 1);
  const low = Math.min(Math.floor(place), SCALE.length - 2);
  const at = (step: number, i: 0 | 1 | 2) => SCALE[step]?.[i] ?? 0;
  const between = (i: 0 | 1 | 2) => Math.round(at(low, i) + (at(low + 1, i) - at(low, i)) * (place - low));
  return [between(0), between(1), between(2)];
}
