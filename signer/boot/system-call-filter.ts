// Step "system call filter" (native/seccomp.c), as early as possible, so that only a filtered process ever holds
// secrets.

import type { Log } from '../../common/observe/log.ts';
import type { Config } from '../config/options.ts';
import { type Addon, loadAddon, type MemoryPolicy } from '../native/load.ts';
import type { Telemetry } from './telemetry.ts';
import type { World } from './world.ts';

export function filterSystemCalls(
  { seccomp }: Config['server'],
  { telemetry: { metrics } }: { readonly telemetry: Pick<Telemetry, 'metrics'> },
  { logger }: World,
): void {
  const filtered = applySystemCallPolicy(seccomp, logger.module('server'));
  metrics.systemCallsFiltered.set(filtered ? 1 : 0);
}

/** Call once. @returns whether the filter is in force @throws Error under `required`, when it is not */
export function applySystemCallPolicy(
  policy: MemoryPolicy,
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
