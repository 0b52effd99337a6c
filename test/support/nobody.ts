// Programs of this checkout as another user than root, who may do what a user may not: root's tests of limits and of
// foreign users run as nobody. A checkout under /root, or in any folder that others cannot enter, is entered by a
// capability to read, and by nothing else.

import { spawnSync } from 'node:child_process';
import { skipped } from './needs.ts';

const NOBODY = 65_534;
const AS_NOBODY = ['--reuid', String(NOBODY), '--regid', String(NOBODY), '--clear-groups', '--'] as const;
/** capabilities(7). The second may write, too; containers have it where they lack the first. */
const READING = ['dac_read_search', 'dac_override'] as const;

/** Without the securebit access(2) asks as somebody without capabilities, and Node asks so whether a file is there. */
function capability(name: string): readonly string[] {
  return ['--securebits', '+no_setuid_fixup', '--inh-caps', `+${name}`, '--ambient-caps', `+${name}`];
}

/** The checkout is read, in both ways. */
const PROBE = `const fs = require('node:fs');
const file = ${JSON.stringify(import.meta.filename)};
process.exit(process.getuid() === ${NOBODY} && fs.existsSync(file) && fs.readFileSync(file).length > 0 ? 0 : 1);`;

export interface OtherUser {
  /**
   * The program and the arguments that run a command as this user; the command itself where this process is not root's.
   */
  command(program: string, args: readonly string[]): readonly [string, readonly string[]];
}

/**
 * @returns undefined when root's children here can be nobody else who reads the checkout, which was said
 */
export function otherUser(): OtherUser | undefined {
  if (process.getuid?.() !== 0) return { command: (program, args) => [program, args] };
  const ways = [AS_NOBODY, ...READING.map((name) => [...capability(name), ...AS_NOBODY])];
  const way = ways.find((options) => spawnSync('setpriv', [...options, process.execPath, '-e', PROBE]).status === 0);
  if (way !== undefined) return { command: (program, args) => ['setpriv', [...way, program, ...args]] };
  skipped(
    'to run this checkout as nobody: setpriv (util-linux), a folder that others can enter or CAP_DAC_READ_SEARCH',
  );
  return undefined;
}
