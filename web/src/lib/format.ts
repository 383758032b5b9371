/** 12345 -> 12,345. */
export function count(number: number): string {
  return number.toLocaleString("en", { signDisplay: "negative" }); // no sign for values that round to 0
}

/** 1234567 -> 1.23M. */
export function human(number: number): string {
  for (const [size, letter] of [
    [1e12, "T"],
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const)
    if (Math.abs(number) >= 0.9995 * size) return `${Number((number / size).toPrecision(3))}${letter}`;
  return String(Number(number.toPrecision(3)));
}

/** 3725 -> 1:02:05. */
export function clock(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (number: number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

export function percent(share: number, digits = 1): string {
  return `${(100 * share).toFixed(digits)} %`;
}

export function plural(number: number, one: string, several = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : several}`;
}
