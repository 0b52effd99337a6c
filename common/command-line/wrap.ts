// Breaking text into lines of a terminal: between words, and within one only where it is longer than a line.

/** Where no terminal says how wide it is. */
export const DEFAULT_COLUMNS = 100;
/** Narrower, a table is not readable; wider, a paragraph is not. */
const MIN_COLUMNS = 40;
const MAX_COLUMNS = 120;

/** How wide lines are for this output: a terminal's own width, within bounds; a pipe has none. */
export function columnsOf({ columns = 0 }: { readonly columns?: number | undefined }): number {
  if (columns === 0) return DEFAULT_COLUMNS;
  return Math.min(MAX_COLUMNS, Math.max(MIN_COLUMNS, columns));
}

/**
 * Lines for a terminal; those of a file or a pipe stay whole, to be searched. So does a word that is longer than a
 * line.
 */
export function wrapFor(stream: Shown, text: string): string[] {
  const columns = boundOf(stream);
  return text.split('\n').flatMap((line) => {
    const said = line.trimStart();
    const indent = line.slice(0, line.length - said.length);
    return wrap(said, columns - indent.length, 'whole words').map((part) => indent + part);
  });
}

export interface Shown {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export function boundOf(stream: Shown): number {
  return stream.isTTY === true ? columnsOf(stream) : Number.POSITIVE_INFINITY;
}

export function wrap(text: string, columns: number, longer: 'whole words' | 'broken words' = 'broken words'): string[] {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > columns) {
    const space = rest.lastIndexOf(' ', columns);
    const end = space > 0 ? space : longer === 'broken words' ? columns : rest.indexOf(' ', columns);
    if (end === -1) break;
    lines.push(rest.slice(0, end).trimEnd());
    rest = rest.slice(end).trimStart();
  }
  return [...lines, rest];
}
