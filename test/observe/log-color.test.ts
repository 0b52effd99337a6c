// The text log on a terminal: colour, unless NO_COLOR (no-color.org) is set or the terminal has none.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { atTerminal } from '../support/pseudo-terminal.ts';

const ROOT = join(import.meta.dirname, '../..');
const LOG = `import { createLogger } from '${ROOT}/common/observe/logger.ts';
const logger = createLogger({ level: 'info', format: 'text' });
logger.module('server').info({}, 'said');
await logger.end();`;
const COMMAND = `${ROOT}/bin/pinned-node --input-type=module -e "${LOG.replaceAll('\n', ' ')}"`;

describe.skipIf(process.platform !== 'linux')('a text log on a terminal', () => {
  it.each<[string, string, boolean]>([
    ['xterm', '', true],
    ['xterm', '1', false],
    ['dumb', '', false],
  ])('TERM=%s NO_COLOR=%s: colour %s', async (term, noColor, isPainted) => {
    // A clean environment: for colours, Node also asks CI, COLORTERM, FORCE_COLOR, TMUX and others.
    const setting = noColor === '' ? '' : `NO_COLOR=${noColor}`;
    const { shown } = await atTerminal(`env -i PATH="$PATH" HOME="$HOME" TERM=${term} ${setting} ${COMMAND}`, []);
    expect(shown).toContain('said');
    expect(shown.includes('\u001b[')).toBe(isPainted);
  });
});
