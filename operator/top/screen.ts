// Where frames go: onto the other screen of a terminal, which is left as it was found however the command ends, or one
// after the other into a file or a pipe, without moving its cursor. Colour is as everywhere (command-line/color.ts).

import { type Paint, painter } from '../../command-line/color.ts';
import type { Terminal } from '../../command-line/terminal.ts';

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
  /** May be called again. */
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
