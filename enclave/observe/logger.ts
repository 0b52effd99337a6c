// The program's log: pino as JSON lines, or the same records as text for people. Secrets are kept out at the call sites;
// the redaction here is the second line of defence, for field names that could hold one.

import { pino } from 'pino';
import type { Log } from './log.ts';
import { textLine } from './log-text.ts';

export type LogModule = 'server' | 'http' | 'auth' | 'keys' | 'signing' | 'slashing' | 'tls' | 'chamber';

export interface LoggerOptions {
  /** `info`, or `info,http=debug,slashing=warn`: a default level and levels of single modules. */
  readonly level: string;
  readonly format: 'text' | 'json';
  /** ANSI colour in text; unset: when the destination is a terminal. */
  readonly color?: boolean | undefined;
}

export interface LogDestination {
  write(line: string): unknown;
}

export interface Logger {
  module(name: LogModule): Log;
  /** Write out what is buffered; before the process ends. */
  flush(): void;
}

export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'off'] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

/** Field names that never reach a log line with their value, at the top level and one level down. */
const SECRET_FIELDS = [
  'authorization',
  'password',
  'passwords',
  'token',
  'secret',
  'secretKey',
  'privateKey',
  'mnemonic',
  'keystore',
  'keystores',
];

/** The default level and the modules' own, or undefined when the filter is not well formed. */
export function parseLogFilter(
  filter: string,
): { level: LogLevel; modules: ReadonlyMap<string, LogLevel> } | undefined {
  let level: LogLevel = 'info';
  const modules = new Map<string, LogLevel>();
  for (const part of filter.split(',')) {
    const [left = '', right, ...rest] = part.trim().split('=');
    const named = right ?? left;
    const found = LOG_LEVELS.find((candidate) => candidate === named.toLowerCase());
    if (found === undefined || rest.length > 0 || left === '') return undefined;
    if (right === undefined) level = found;
    else modules.set(left, found);
  }
  return { level, modules };
}

/** @throws RangeError when the level filter is not well formed. */
export function createLogger(options: LoggerOptions, destination: LogDestination = standardOutput()): Logger {
  const filter = parseLogFilter(options.level);
  if (filter === undefined) throw new RangeError(`logging.level: not a level filter: ${options.level}`);
  const color = options.color ?? process.stdout.isTTY === true;
  const sink: LogDestination =
    options.format === 'json' ? destination : { write: (line) => destination.write(textLine(line, color)) };
  const root = pino(
    {
      base: null,
      level: 'trace',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    },
    sink as pino.DestinationStream,
  );
  return {
    module: (name) => root.child({ module: name }, { level: pinoLevel(filter.modules.get(name) ?? filter.level) }),
    flush: () => {
      if ('flushSync' in destination && typeof destination.flushSync === 'function') destination.flushSync();
    },
  };
}

/** Buffered while an earlier write is under way, so that logging does not block signing. */
function standardOutput(): LogDestination {
  return pino.destination({ fd: 1, sync: false });
}

function pinoLevel(level: LogLevel): string {
  return level === 'off' ? 'silent' : level;
}
