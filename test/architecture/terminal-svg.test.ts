// A terminal as a drawing (demo/screenshots): colours and columns are those of the text.

import { expect, it } from 'vitest';
import { runsOf, terminalSvg } from '../../demo/screenshots/terminal-svg.ts';

const [RED, GREEN, RESET] = ['\u001B[31m', '\u001B[32m', '\u001B[0m'];

it('each run of one colour stands in its column', () => {
  const [plain, red, rest, green] = runsOf(`name  ${RED}DOWN${RESET}  7 ▁█ ${GREEN}up${RESET}`);
  expect([plain, red, rest, green].map((run) => [run?.column, run?.text])).toEqual([
    [0, 'name  '],
    [6, 'DOWN'],
    [10, '  7 ▁█ '],
    [17, 'up'],
  ]);
  expect(plain?.color).toBe(rest?.color);
  expect(new Set([plain?.color, red?.color, green?.color]).size).toBe(3);
});

it('a sequence that is not drawn ends it: nothing of a screen is left out unseen', () => {
  expect(() => runsOf('\u001B[2Jx')).toThrow('not drawn: ESC[2J');
  expect(() => runsOf('\u001B[45mx')).toThrow('not drawn: ESC[45m');
});

it('a drawing holds every line, escaped, and loads nothing', () => {
  const svg = terminalSvg(['a <b> & "c"', '', 'last'], { columns: 20, title: 'a title' });
  expect(svg).toContain('>a &lt;b&gt; &amp; &quot;c&quot;</text>');
  expect(svg.match(/<text /g)).toHaveLength(2);
  expect(svg.replaceAll('http://www.w3.org/2000/svg', '')).not.toMatch(/https?:|<script|@import|href/);
});
