// Command lines and Python code.

/** A command-line argument, quoted if necessary. */
export function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`;
}

/** A command line without empty arguments. */
export function command(...words: (string | null | undefined | false)[]): string {
  return words
    .filter((one): one is string => !!one)
    .map(word)
    .join(" ");
}

/** A value as a Python literal. */
export function python(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  return typeof value === "number" ? String(value) : JSON.stringify(value);
}

/** name=value, … without empty values. */
export function keywords(values: Record<string, unknown>): string {
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return given.map(([name, value]) => `${name}=${python(value)}`).join(", ");
}
