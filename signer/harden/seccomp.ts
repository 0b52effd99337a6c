// `server.seccomp` (docs/security.md; the list is in native/seccomp.c). It cannot be taken back, so nothing that runs
// later may need these calls.

import type { Log } from '../../common/observe/log.ts';
import { type Addon, loadAddon, type MemoryPolicy } from '../native/load.ts';

export type SystemCallPolicy = MemoryPolicy;

/** Call once. @returns whether the filter is in force @throws Error under `required`, when it is not */
export function applySystemCallPolicy(
  policy: SystemCallPolicy,
  log: Log,
  load: () => Addon | undefined = loadAddon,
): boolean {
  if (policy === 'off') return false;
  const problem = installFilter(load);
  if (problem === undefined) {
    log.info({ policy }, 'system calls are filtered');
    return true;
  }
  if (policy === 'required') throw new Error(`server.seccomp is "required": ${problem}`);
  log.warn({ policy, problem }, 'system calls are not filtered as server.seccomp would have it');
  return false;
}

function installFilter(load: () => Addon | undefined): string | undefined {
  try {
    const addon = load();
    if (addon === undefined) return 'it needs the native addon: build it with "make native"';
    addon.installSystemCallFilter();
    return undefined;
  } catch (error) {
    return `the filter could not be installed: ${error instanceof Error ? error.message : error}`;
  }
}
