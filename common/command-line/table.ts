// Tables and lists of fields for people: aligned, no wider than the terminal, with text of others made printable.

import { printable } from './text.ts';
import { DEFAULT_COLUMNS, wrap } from './wrap.ts';

const GAP = '  ';
/** A last column narrower than this is not worth wrapping into. */
const MIN_WRAPPED_COLUMNS = 20;

/** How far in a word stands that has a line to itself. */
const WHOLE_WORD_INDENT = '  ';

/**
 * The last column takes what is left of the line and wraps; where there is no room, each row is a list of its fields. A
 * word that fits a line but not the column, as an ARN does, has a line to itself, to be copied.
 */
export function renderTable(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  columns = DEFAULT_COLUMNS,
): string {
  const cells = [headings, ...rows].map((row) => row.map(printable));
  const widths = headings.map((_, column) => cells.reduce((most, row) => Math.max(most, row[column]?.length ?? 0), 0));
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
      const [first = '', ...rest] = wrapCell(row.at(-1) ?? '', room, before, columns);
      const start = row.slice(0, -1).map((cell, column) => cell.padEnd(widths[column] ?? 0) + GAP);
      return [`${start.join('')}${first.slice(before)}`, ...rest];
    })
    .map((line) => `${line.trimEnd()}\n`)
    .join('');
}

/**
 * Lines of a last column, each with its indent. The first continues the line of the other columns, and may be empty.
 */
function wrapCell(text: string, room: number, before: number, columns: number): string[] {
  const indent = ' '.repeat(before);
  const isTooLong = (word: string) => word.length > room && word.length + WHOLE_WORD_INDENT.length <= columns;
  const lines: string[] = [];
  let words: string[] = [];
  const flush = () => {
    if (words.length > 0) lines.push(...wrap(words.join(' '), room).map((line) => indent + line));
    words = [];
  };
  for (const word of text.split(' ')) {
    if (!isTooLong(word)) words.push(word);
    else {
      flush();
      if (lines.length === 0) lines.push(indent);
      lines.push(WHOLE_WORD_INDENT + word);
    }
  }
  flush();
  return lines;
}

export function renderFields(
  fields: readonly (readonly [name: string, value: string])[],
  columns = DEFAULT_COLUMNS,
): string {
  const [heading, ...rows] = fields;
  return heading === undefined ? '' : renderTable(heading, rows, columns);
}
