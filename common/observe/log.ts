// The logging interface that modules take. logger.ts and plain-logger.ts satisfy it; tests pass a recorder.

/**
 * The members of a log line: snake_case, which the compiler checks where they are written out. The same word for the
 * same thing in every line (`public_key`, `request_id`, `err`); the unit last; durations with at most three decimals.
 */
export type LogFields = Readonly<Record<Lowercase<string>, unknown>>;

export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface ModuleLogs<Module extends string> {
  module(name: Module): Log;
  /** Whether lines at debug are written, for what is costly to say; false where a log does not know. */
  isDebug?(name: Module): boolean;
}

/** A duration as log lines and statuses have it: at most three decimals. */
export function toMilli<Value extends number | undefined>(seconds: Value): Value {
  return (seconds === undefined ? undefined : Math.round(seconds * 1000) / 1000) as Value;
}
