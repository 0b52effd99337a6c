// The release of this checkout (`make release`), unpacked: what users install, and what the benchmarks beside peers and
// of all Ethereum measure. Releases are for Linux; elsewhere the checkout's own program is measured.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '..');
const UNPACKED = join(ROOT, 'build/bench/release');

/** Built anew, so that nothing older is measured. @returns the program */
export function releasedProgram(): string {
  if (process.platform !== 'linux') return join(ROOT, 'bin/strongroom');
  execFileSync('make', ['--no-print-directory', 'release'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const release = join(ROOT, 'build/release');
  const tarball = readdirSync(release).find((name) => name.endsWith('.tar.gz'));
  if (tarball === undefined) throw new Error(`no tarball in ${release}`);
  rmSync(UNPACKED, { recursive: true, force: true });
  mkdirSync(UNPACKED, { recursive: true });
  execFileSync('tar', ['-x', '-z', '-f', join(release, tarball), '-C', UNPACKED, '--strip-components=1']);
  return join(UNPACKED, 'bin/strongroom');
}
