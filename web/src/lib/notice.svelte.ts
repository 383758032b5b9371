/** One line at the foot of the page: what a person should know of what was just done. */
export const notice = $state({ text: "" });

/** A file was saved, in which so many cells are not as they were. */
export function tellEscapes(name: string, cells: number): void {
  const begin = cells === 1 ? "1 cell begins" : `${cells.toLocaleString("en")} cells begin`;
  notice.text = cells
    ? `${name}: ${begin} like a formula (= + - @) and got a leading apostrophe, so that spreadsheets show the text.`
    : "";
}
