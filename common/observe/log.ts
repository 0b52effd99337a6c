// The logging interface that modules take.

/** snake_case; one word for one thing in every line; the unit last; durations with at most three decimals. */
export type LogFields = Readonly<Record<Lowercase<string>, unknown>>;

export interface Log {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

export interface ModuleLogs<Module extends string> {
  module(name: Module): Log;
  /** For what is costly to say; false where a log does not know. */
  isDebug?(name: Module): boolean;
}

/** At most three decimals. */
export function toMilli<Value extends number | undefined>(seconds: Value): Value {
  return (seconds === undefined ? undefined : Math.round(seconds * 1000) / 1000) as Value;
}
