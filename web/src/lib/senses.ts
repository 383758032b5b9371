/** The response of /api/senses: one word in several contexts. */
export interface Senses {
  word: string;
  occurrences: { label: string; text: string; begin: number; end: number }[];
  distances: number[][][]; // layer × occurrence × occurrence: 1 − cosine
  others: (number | null)[]; // mean of other word pairs, by layer
  trajectories: Plane;
  centered: Plane; // without the mean of each layer
}

export interface Plane {
  points: number[][][]; // layer × occurrence × (x, y)
  explained: number[];
}

/** The context of the word, shortened for a figure. */
export function around(position: Senses["occurrences"][number], most = 34): [string, string, string] {
  const { text, begin, end } = position;
  const room = Math.max(0, most - (end - begin));
  const before = text.slice(0, begin);
  const after = text.slice(end);
  const left = Math.min(before.length, Math.max(Math.floor(room / 2), room - after.length));
  const right = Math.min(after.length, room - left);
  return [
    (left < before.length ? "…" : "") + before.slice(before.length - left),
    text.slice(begin, end),
    after.slice(0, right) + (right < after.length ? "…" : ""),
  ];
}
