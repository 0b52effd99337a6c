// The Markdown that the references are made of.

export function code(text: string): string {
  return `\`${text}\``;
}

export function codes(texts: readonly string[], between = ', '): string {
  return texts.map(code).join(between);
}

/** A row is a line: its names, which stand in code, and what is said of them. */
export function table(rows: readonly (readonly [names: string | readonly string[], text: string])[]): string {
  return rows.map(([names, text]) => `- ${codes([names].flat())}: ${text}`).join('\n');
}

/** Rows that say the same are one. */
export function tableOfAlike<Row>(
  rows: readonly Row[],
  nameOf: (row: Row) => string,
  textOf: (row: Row) => string,
): string {
  return table([...Map.groupBy(rows, textOf)].map(([text, alike]) => [alike.map(nameOf), text]));
}

export function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The anchor that a forge makes of a heading; the site makes its anchors so, and a test judges links by it. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
