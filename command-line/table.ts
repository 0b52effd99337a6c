// Tables and lists of fields for people: aligned, no wider than the terminal, with text of others made printable.

import { printable } from './text.ts';
import { DEFAULT_COLUMNS, wrap } from './wrap.ts';

const GAP = '  ';
/** A last column narrower than this is not worth wrapping into. */
const MIN_WRAPPED_COLUMNS = 20;

/**
 * Rows under headings. The last column takes what is left of the line and wraps; the others are as wide as they are.
 * Where they leave no room for it, each row is a list of its fields.
 */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  columns = DEFAULT_COLUMNS,
): string {
  const cells = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const before = widths.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0);
  const widest = before + (widths.at(-1) ?? 0);
  if (headings.length > 2 && widest > columns && columns - before < MIN_WRAPPED_COLUMNS) {
    return rows
      .map((row) =>
        renderFields(
          headings.map((heading, at) => [heading, row[at] ?? '']),
          columns,
        ),
      )
      .join('\n');
  }
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
  columns = DEFAULT_COLUMNS,
): string {
  const [heading, ...rows] = fields;
  return heading === undefined ? '' : renderTable(heading, rows, columns);
}
