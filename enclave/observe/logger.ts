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
const SECRET_FIELDS: ReadonlySet<string> = new Set([
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
]);

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
      formatters: { level: (label) => ({ level: label }), log: redacted },
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

/** Bytes of log lines that are written together: one system call for many audit lines. */
const BUFFERED_BYTES = 8 * 1024;
/** A line waits no longer than this for others. */
const FLUSH_INTERVAL_MS = 100;

/** Written in the background, so that a slow reader of the log does not hold up signing. */
function standardOutput(): LogDestination {
  return pino.destination({ fd: 1, sync: false, minLength: BUFFERED_BYTES, periodicFlush: FLUSH_INTERVAL_MS });
}

/** Runs for every line: pino's own redaction by paths costs ten times as much. */
function redacted(fields: Record<string, unknown>, level = 0): Record<string, unknown> {
  let clean = fields;
  for (const name in fields) {
    const value = fields[name];
    const replacement = SECRET_FIELDS.has(name)
      ? '[redacted]'
      : level === 0 && isRecord(value)
        ? redacted(value, 1)
        : value;
    if (replacement === value) continue;
    if (clean === fields) clean = { ...fields };
    clean[name] = replacement;
  }
  return clean;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function pinoLevel(level: LogLevel): string {
  return level === 'off' ? 'silent' : level;
}
