// Where the frames of `operator top` go: onto the other screen of a terminal, which is left as it was found however the
// command ends, or into a file or a pipe. Also the keys that are pressed there, one at a time.

import { type Paint, painter } from '../../common/command-line/paint.ts';
import type { Terminal } from '../../common/command-line/terminal.ts';

const DEFAULT_COLUMNS = 80;
const DEFAULT_ROWS = 24;
const MIN_COLUMNS = 40;
const ENTER = '\u001B[?1049h\u001B[?25l';
const LEAVE = '\u001B[?25h\u001B[?1049l';
const HOME = '\u001B[H';
const CLEAR_REST_OF_LINE = '\u001B[K';
const CLEAR_BELOW = '\u001B[J';

export interface Screen {
  /** Asked for each frame: a terminal may have another size by then. */
  size(): { readonly columns: number; readonly rows: number };
  readonly paint: Paint;
  show(lines: readonly string[]): void;
  close(): void;
}

/** @param live frames follow each other in the same place, on a terminal */
export function openScreen({ stdout, env }: Pick<Terminal, 'stdout' | 'env'>, live: boolean): Screen {
  const isTerminal = stdout.isTTY === true;
  const inPlace = live && isTerminal;
  let isOpen = inPlace;
  let isFirst = true;
  if (inPlace) stdout.write(ENTER);
  const columnsGiven = Number(env['COLUMNS']);
  return {
    size() {
      const given = Number.isInteger(columnsGiven) && columnsGiven > 0 ? columnsGiven : DEFAULT_COLUMNS;
      const columns = isTerminal ? stdout.columns || given : given;
      return {
        columns: Math.max(MIN_COLUMNS, columns),
        rows: inPlace ? stdout.rows || DEFAULT_ROWS : Number.POSITIVE_INFINITY,
      };
    },
    paint: painter(stdout, env),
    show(lines) {
      if (inPlace) stdout.write(`${HOME}${lines.map((line) => line + CLEAR_REST_OF_LINE).join('\r\n')}${CLEAR_BELOW}`);
      else stdout.write(`${isFirst ? '' : '\n'}${lines.join('\n')}\n`);
      isFirst = false;
    },
    close() {
      if (isOpen) stdout.write(LEAVE);
      isOpen = false;
    },
  };
}

export type PressedKey = 'quit' | 'keys' | 'next' | 'back' | 'replica';

const KEYS: Readonly<Record<string, PressedKey>> = {
  q: 'quit',
  Q: 'quit',
  '\u0003': 'quit', // Ctrl-C, which sends no signal here
  '\u0004': 'quit', // Ctrl-D
  k: 'keys',
  '\u001B': 'keys', // Esc goes back, too
  n: 'next',
  ' ': 'next',
  '\u001B[6~': 'next',
  '\u001B[C': 'next',
  p: 'back',
  '\u001B[5~': 'back',
  '\u001B[D': 'back',
  r: 'replica',
  '\t': 'replica',
};

/** @returns what gives the keyboard back; undefined where there is none */
export function openKeyboard(
  { stdin }: Pick<Terminal, 'stdin'>,
  onKey: (key: PressedKey) => void,
): (() => void) | undefined {
  if (stdin.isTTY !== true) return undefined;
  const read = (text: string): void => {
    // Of several that came at once the first; an escape sequence that means nothing here is no Esc.
    const key = KEYS[text] ?? (text.startsWith('\u001B') ? undefined : KEYS[text.slice(0, 1)]);
    if (key !== undefined) onKey(key);
  };
  stdin.setEncoding('utf8').setRawMode(true).on('data', read);
  return () => {
    stdin.off('data', read);
    stdin.setRawMode(false).pause();
  };
}
