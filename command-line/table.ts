// Tables and lists of fields for people: aligned, at most 100 columns wide, with text of others made printable.

import { printable } from './text.ts';

export const MAX_COLUMNS = 100;
const GAP = '  ';
const MIN_COLUMNS = 40;
/** A last column narrower than this is not worth wrapping into. */
const MIN_WRAPPED_COLUMNS = 20;

/** How wide lines are for this output: a terminal's own width, within bounds; a pipe has none. */
export function columnsOf({ columns }: { readonly columns?: number | undefined }): number {
  return Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, columns ?? MAX_COLUMNS));
}

/**
 * Rows under headings. The last column takes what is left of the line and wraps; the others are as wide as they are.
 */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  columns = MAX_COLUMNS,
): string {
  const cells = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
  const room = Math.max(MIN_WRAPPED_COLUMNS, columns - before);
  return cells
    .flatMap((row) => {
      const [first = '', ...rest] = wrap(row.at(-1) ?? '', room);
      const start = row.slice(0, -1).map((cell, column) => cell.padEnd(widths[column] ?? 0) + GAP);
      return [`${start.join('')}${first}`, ...rest.map((line) => ' '.repeat(before) + line)];
    })
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/** One field a line. */
export function renderFields(
  fields: readonly (readonly [name: string, value: string])[],
  columns = MAX_COLUMNS,
): string {
  const [heading, ...rows] = fields;
  return heading === undefined ? '' : renderTable(heading, rows, columns);
}

/** Lines of at most `columns`, broken after spaces, and within words that are longer. */
function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > columns) {
    const space = rest.lastIndexOf(' ', columns);
    const end = space > 0 ? space : columns;
    lines.push(rest.slice(0, end));
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}
