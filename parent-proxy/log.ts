// The parent proxy's own log, in the form of the signer's: one JSON object a line. Credentials are never a field. What
// happens with every connection of a flood is said once a minute: the metrics count, the log explains.

import type { LogFields, Log as SignerLog } from '../observe/log.ts';
import type { PausingClock } from './clock.ts';

export type LogModule = 'server' | 'ingress' | 'egress' | 'logs' | 'configuration' | 'credentials';

export type Log = Pick<SignerLog, 'info' | 'warn' | 'error'>;

export interface Logger {
  module(name: LogModule): Log;
}

/** Between two warnings of one kind. */
const PACE_MS = 60_000;

export function createLogger(output: { write(line: string): unknown }, clock: PausingClock): Logger {
  const write = (level: string, module: LogModule, fields: LogFields, msg: string): void => {
    const time = new Date(clock.now()).toISOString();
    output.write(`${JSON.stringify({ level, time, module, ...fields, msg })}\n`);
  };
  return {
    module: (name) => ({
      info: (fields, message) => write('info', name, fields, message),
      warn: (fields, message) => write('warn', name, fields, message),
      error: (fields, message) => write('error', name, fields, message),
    }),
  };
}

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
export function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
