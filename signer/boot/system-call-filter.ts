// Step "system call filter": it installs the filter of server.seccomp as early as possible, so that only a filtered
// process ever holds secrets. No later step starts a program, mounts a file system, or changes its user.

import type { Config } from '../config/options.ts';
import { applySystemCallPolicy } from '../harden/seccomp.ts';
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
