/** A one-line message at the bottom of the page. */
export const notice = $state({ text: "" });

/** Reports how many cells of a saved file were escaped. */
export function tellEscapes(name: string, cells: number): void {
  const begin = cells === 1 ? "1 cell begins" : `${cells.toLocaleString("en")} cells begin`;
  notice.text = cells
    ? `${name}: ${begin} like a formula (= + - @) and got a leading apostrophe, so that spreadsheets show the text.`
    : "";
}
