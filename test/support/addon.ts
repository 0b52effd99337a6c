// The native addon for tests: builds it when it is missing or older than its sources. Without a C compiler the tests
// that need it are skipped, and the output says so.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADDON_PATH } from '../../signer/native/load.ts';
import { lacking } from './needs.ts';

export const PROJECT_ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Whether the addon is there to be tested, as new as its sources. False only where there is no C compiler. */
export function addonForTests(): boolean {
  if (lacking('cc') !== undefined) return false;
  if (make('-q').status !== 0) buildAside();
  return true;
}

/** Test files run at the same time: each builds in a folder of its own and moves the result into place file by file. */
function buildAside(): void {
  const aside = `build/native.${process.pid}`;
  const built = make(`native_directory=${aside}`);
  if (built.status !== 0) throw new Error(`the native addon does not build:\n${built.stderr}`);
  mkdirSync(dirname(ADDON_PATH), { recursive: true });
  const objects = readdirSync(`${PROJECT_ROOT}/${aside}`).filter((name) => name !== basename(ADDON_PATH));
  for (const name of [...objects, basename(ADDON_PATH)]) {
    renameSync(`${PROJECT_ROOT}/${aside}/${name}`, `${dirname(ADDON_PATH)}/${name}`);
  }
  rmSync(`${PROJECT_ROOT}/${aside}`, { recursive: true });
}

function make(...options: string[]) {
  return spawnSync('make', ['-f', 'signer/native/native.mk', ...options, 'native'], {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
  });
}
