// A terminal's text with the colours of common/command-line/paint.ts as a drawing: it stays sharp, and git keeps it as
// text. Each run of one colour has its own place and width, so that columns stand whatever font a reader has.

import { html } from '../../common/formats/html.ts';

const SEQUENCE = new RegExp(String.raw`(${'\u001B'}\[[\d;?]*[A-Za-z])`);
const CELL = { width: 8.4, height: 18 };
const MARGIN = 16;
const PLAIN = '#d8dee9';
const COLORS: Readonly<Record<string, string>> = { 0: PLAIN, 31: '#ff6b6b', 32: '#7bd88f', 33: '#ffd166' };

export interface Run {
  readonly column: number;
  readonly color: string;
  readonly text: string;
}

/** The parts of a line, without their escape sequences. @throws Error about a sequence that no colour is */
export function runsOf(line: string): readonly Run[] {
  const runs: Run[] = [];
  let column = 0;
  let color = PLAIN;
  for (const part of line.split(SEQUENCE)) {
    if (part.startsWith('\u001B')) {
      const next = COLORS[part.slice(2, -1)];
      if (!part.endsWith('m') || next === undefined) throw new Error(`not drawn: ESC${part.slice(1)}`);
      color = next;
      continue;
    }
    if (part.trim() !== '') runs.push({ column, color, text: part });
    column += [...part].length;
  }
  return runs;
}

export function terminalSvg(lines: readonly string[], { columns, title }: { columns: number; title: string }): string {
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN);
  const height = lines.length * CELL.height + 2 * MARGIN;
  const texts = lines.flatMap((line, row) =>
    runsOf(line).map(({ column, color, text }) => {
      const x = (MARGIN + column * CELL.width).toFixed(1);
      const y = MARGIN + row * CELL.height + 13;
      const length = ([...text].length * CELL.width).toFixed(1);
      return html`<text x="${x}" y="${y}" fill="${color}" textLength="${length}" xml:space="preserve">${text}</text>\n`;
    }),
  );
  return `${html`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" font-size="14"
 font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace">
<title>${title}</title>
<rect width="${width}" height="${height}" rx="8" fill="#16181d"/>
${texts}</svg>`}\n`;
}
