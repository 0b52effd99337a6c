// Where the profiles of `strongroom operator` are, for the program that reads them and for those that write the first.

import { homedir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import type { Terminal } from './terminal.ts';

export function profilePath(env: Terminal['env']): string {
  const configured = env['XDG_CONFIG_HOME'];
  // XDG Base Directory Specification: a relative path is invalid and is ignored.
  const base = configured !== undefined && isAbsolute(configured) ? configured : join(homedir(), '.config');
  return join(base, 'strongroom', 'operator.yaml');
}
