// The server's text log on a terminal: colour, unless NO_COLOR (no-color.org) is set or the terminal has none; an
// option says otherwise. The start fails, after its first lines.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { atTerminal } from '../support/pseudo-terminal.ts';

const ROOT = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'sr-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const configuration = join(folder, 'strongroom.yaml');
writeFileSync(
  configuration,
  `{ network: mainnet, logging: { format: text }, anti_slashing: { backend: sqlite, path: ${folder}/none/store } }\n`,
);
const COMMAND = `${ROOT}/bin/pinned-node ${ROOT}/bin/strongroom.ts server -c ${configuration}`;

describe.skipIf(process.platform !== 'linux')('a text log on a terminal', () => {
  it.each<[string, string, string, boolean]>([
    ['TERM=xterm', '', '', true],
    ['TERM=xterm', 'NO_COLOR=1', '', false],
    ['TERM=xterm', '', '--logging-color=false', false],
    ['TERM=dumb', '', '', false],
    ['TERM=dumb', '', '--logging-color', true],
  ])('%s %s %s: colour %s', async (terminal, setting, flag, isPainted) => {
    // A clean environment: for colours, Node also asks CI, COLORTERM, FORCE_COLOR, TMUX and others.
    const command = `env -i PATH="$PATH" HOME="$HOME" ${terminal} ${setting} ${COMMAND} ${flag}`;
    const { shown } = await atTerminal(command, []);
    expect(shown).toContain('static_auth lets nobody in');
    expect(shown.includes('\u001b[')).toBe(isPainted);
    expect(shown.includes('\u001b[33mWARN')).toBe(isPainted);
  });
});
