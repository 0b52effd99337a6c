// The signer's log: pino as JSON lines, or text for people. Secrets are kept out at the call sites; redaction is the
// second line of defence.

import { pino } from 'pino';
import type { ModuleLogs } from './log.ts';
import { type LogLevel, type LogModule, levelOf, parseLogFilter } from './log-filter.ts';
import { textLine } from './log-text.ts';
import { lostLinesLine, type Output, openOutput } from './output.ts';
import { redacted } from './redaction.ts';

export interface LoggerOptions {
  /** `info`, or `info,http=debug,slashing=warn`. */
  readonly level: string;
  readonly format: 'text' | 'json';
  /** Of text. Unset: none. */
  readonly color?: boolean | undefined;
}

export interface LogDestination {
  write(line: string): unknown;
}

export interface Logger extends ModuleLogs<LogModule> {
  droppedLines(): number;
  /** Lines were dropped, and the destination has taken none since. */
  isLosing(): boolean;
  /** Whether the last line is with the system; false when it was dropped, and where that cannot be known. */
  confirmed(): Promise<boolean>;
  /** At once, for about a second at most: before the process ends for a bug. */
  flush(): void;
  /** Gives up when the destination does not take what waits; later lines are dropped. */
  end(): Promise<void>;
}

/** @throws RangeError when the level filter is not well formed */
export function createLogger(options: LoggerOptions, given?: LogDestination): Logger {
  const filter = parseLogFilter(options.level);
  if (filter === undefined) throw new RangeError(`logging.level: not a level filter: ${options.level}`);
  const { format, color = false } = options;
  const lineOf = (json: string): string => (format === 'json' ? json : textLine(json, color));
  const destination = given ?? standardOutput((lines) => lineOf(lostLinesLine(lines)));
  const output = isOutput(destination) ? destination : undefined;
  const root = pino(
    {
      base: null,
      level: 'trace',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }), log: redacted },
    },
    { write: (json: string) => destination.write(lineOf(json)) } as pino.DestinationStream,
  );
  return {
    module: (name) => root.child({ module: name }, { level: pinoLevel(levelOf(name, filter)) }),
    isDebug: (name) => ['trace', 'debug'].includes(levelOf(name, filter)),
    droppedLines: () => output?.lostLines ?? 0,
    isLosing: () => output?.isLosing === true,
    confirmed: () => output?.confirmed() ?? Promise.resolve(false),
    flush: () => output?.flush(),
    end: async () => output?.end(END_TIMEOUT_MS),
  };
}

function isOutput(destination: LogDestination): destination is Output {
  return 'confirmed' in destination;
}

const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const END_TIMEOUT_MS = 2000;
const COLLECTED = { bytes: 32 * 1024, milliseconds: 100 };

/** In the background: a slow reader of the log does not hold up signing. */
export function standardOutput(lostLine?: (lines: number) => string): Output {
  const said = lostLine === undefined ? {} : { lostLine };
  return openOutput('stdout', { maxWaitingBytes: MAX_WAITING_BYTES, collected: COLLECTED, ...said });
}

function pinoLevel(level: LogLevel): string {
  return level === 'off' ? 'silent' : level;
}
