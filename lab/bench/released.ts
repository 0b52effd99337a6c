// The release of this checkout, unpacked: what users install, and what the benchmarks beside peers and
// of all Ethereum measure. Releases are for Linux; elsewhere the checkout's own program is measured.

import { type ExecFileSyncOptions, execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../..');
const FILES = join(ROOT, 'build/bench/release-files');
const UNPACKED = join(ROOT, 'build/bench/release');

/** This call builds the release, so that a benchmark measures the sources as they are. @returns the program */
export function releasedProgram(): string {
  if (process.platform !== 'linux') return join(ROOT, 'bin/strongroom');
  const quietly: ExecFileSyncOptions = { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] };
  execFileSync('make', ['--no-print-directory', 'native', 'build/launcher/strongroom'], quietly);
  execFileSync(process.execPath, [join(ROOT, 'tools/release/main.ts'), '--directory', FILES], quietly);
  const tarball = readdirSync(FILES).find((name) => name.endsWith('.tar.gz'));
  if (tarball === undefined) throw new Error(`no tarball in ${FILES}`);
  rmSync(UNPACKED, { recursive: true, force: true });
  mkdirSync(UNPACKED, { recursive: true });
  execFileSync('tar', ['-x', '-z', '-f', join(FILES, tarball), '-C', UNPACKED, '--strip-components=1']);
  return join(UNPACKED, 'bin/strongroom');
}
