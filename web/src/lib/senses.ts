/** What /api/senses tells: one word in several places. */
export interface Senses {
  word: string;
  places: { label: string; text: string; begin: number; end: number }[];
  distances: number[][][]; // layer, place, place: 1 − cosine
  others: (number | null)[]; // of each layer, between other words
  ways: Plane;
  apart: Plane; // without what all places share in a layer
}

export interface Plane {
  points: number[][][]; // layer, place, (x, y)
  explained: number[];
}

/** What stands around the word, short enough for a picture. */
export function around(place: Senses["places"][number], most = 34): [string, string, string] {
  const { text, begin, end } = place;
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
