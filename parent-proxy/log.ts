// The parent proxy's log: its modules, and warnings at a pace. What happens with every connection of a flood is said
// once a minute. Credentials are never a field.

import type { Log, LogFields, ModuleLogs } from '../common/observe/log.ts';
import type { PausingClock } from './clock.ts';

type ProxyLogModule = 'server' | 'ingress' | 'egress' | 'logs' | 'configuration' | 'credentials';

export type ProxyLogger = ModuleLogs<ProxyLogModule>;

const PACE_MS = 60_000;

/** A warning that is written at most once a minute, with how many were not. */
export function pacedWarning(log: Log, clock: PausingClock, message: string): (fields: LogFields) => void {
  let nextAt = Number.NEGATIVE_INFINITY;
  let suppressed = 0;
  return (fields) => {
    if (clock.monotonic() < nextAt) {
      suppressed += 1;
      return;
    }
    nextAt = clock.monotonic() + PACE_MS;
    log.warn(suppressed === 0 ? fields : { ...fields, suppressed }, message);
    suppressed = 0;
  };
}

/** What an error is, without its message: messages of the SDK and of a library may quote what they were given. */
export function errorWord(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
