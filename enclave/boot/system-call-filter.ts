// Step "system call filter": what server.seccomp asks for, as early as it can be had, so that secrets are only ever in a filtered process.
// No later step starts a program, mounts, or changes its user.

import type { Config } from '../config/options.ts';
import { applySystemCallPolicy } from '../harden/seccomp.ts';
import type { World } from './boot.ts';
import type { Telemetry } from './telemetry.ts';

export function filterSystemCalls({ server }: Config, { logger }: World, { metrics }: Telemetry): void {
  const filtered = applySystemCallPolicy(server.seccomp, logger.module('server'));
  metrics.systemCallsFiltered.set(filtered ? 1 : 0);
}
