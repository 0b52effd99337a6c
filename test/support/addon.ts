// The native addon for tests: builds it when it is missing, refuses to test against one that is older than its sources. Without a C
// compiler the tests that need it are skipped, and the output says so.

import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADDON_PATH } from '../../enclave/native/load.ts';

export const PROJECT_ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Whether the addon is there to be tested. False only where there is neither an addon nor a C compiler. */
export function addonForTests(): boolean {
  if (existsSync(ADDON_PATH)) {
    if (make('-q').status !== 0) throw new Error('the native addon is older than its sources: run "make native"');
    return true;
  }
  if (spawnSync('cc', ['--version']).status !== 0) {
    console.warn('SKIPPED: no C compiler (cc) here, so the native addon is not tested');
    return false;
  }
  buildAside();
  return true;
}

/** Test files run at the same time: each builds in a folder of its own, and one of them puts it in place. */
function buildAside(): void {
  const aside = `build/native.${process.pid}`;
  const built = make(`native_directory=${aside}`);
  if (built.status !== 0) throw new Error(`the native addon does not build:\n${built.stderr}`);
  try {
    renameSync(`${PROJECT_ROOT}/${aside}`, dirname(ADDON_PATH));
  } catch {
    rmSync(`${PROJECT_ROOT}/${aside}`, { recursive: true });
  }
}

function make(...options: string[]) {
  return spawnSync('make', ['-f', 'enclave/native/native.mk', ...options, 'native'], {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
  });
}
