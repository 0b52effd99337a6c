// Before a run: a folder in which Node.js keeps the compiled code of what it has loaded once, for every process that
// the tests start. A run starts well over a thousand signers and commands, and a third of what a start costs is
// compiling. The folder is the run's own and goes with it: copies of the project in temporary folders would let a
// lasting one grow.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Resolves with what has to be done after the run. */
export async function setup(): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-compiled-'));
  process.env['NODE_COMPILE_CACHE'] = folder;
  return () => rmSync(folder, { recursive: true, force: true });
}
