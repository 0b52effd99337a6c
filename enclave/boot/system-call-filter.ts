// Step "system call filter": what server.seccomp asks for, as early as it can be had, so that secrets are only ever in
// a filtered process. No later step starts a program, mounts, or changes its user.

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
