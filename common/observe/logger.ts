// The signer's log: pino as JSON lines, or text for people. Secrets are kept out at the call sites; redaction is the
// second line of defence.

import { pino } from 'pino';
import type { ModuleLogs } from './log.ts';
import { type LogFilter, type LogLevel, type LogModule, parseLogFilter } from './log-filter.ts';
import { textLine } from './log-text.ts';
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
  /** However long that takes: before the process ends for a bug. */
  flush(): void;
  /** Gives up when the reader of the log does not take what is buffered; later lines are dropped. */
  end(): Promise<void>;
}

const WITHOUT_DEFAULT_LEVEL: ReadonlySet<LogModule> = new Set(['audit', 'slashing_trace']);

/** Who lowers the log does not mean to lose who signed what, nor who raises it to get two lines for each check. */
function levelOf(module: LogModule, { level, modules }: LogFilter): LogLevel {
  return modules.get(module) ?? (WITHOUT_DEFAULT_LEVEL.has(module) && level !== 'off' ? 'info' : level);
}

/** @throws RangeError when the level filter is not well formed */
export function createLogger(options: LoggerOptions, destination: LogDestination = standardOutput()): Logger {
  const filter = parseLogFilter(options.level);
  if (filter === undefined) throw new RangeError(`logging.level: not a level filter: ${options.level}`);
  const buffered = isBuffered(destination) ? destination : undefined;
  let dropped = 0;
  buffered?.on('drop', () => {
    dropped += 1;
  });
  const { format, color = false } = options;
  const lineOf = (json: string): string => (format === 'json' ? json : textLine(json, color));
  let ended = false; // background work goes on until the process exits, and a closed destination throws
  const sink: LogDestination = { write: (json) => ended || destination.write(lineOf(json)) };
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
    module: (name) => root.child({ module: name }, { level: pinoLevel(levelOf(name, filter)) }),
    isDebug: (name) => ['trace', 'debug'].includes(levelOf(name, filter)),
    droppedLines: () => dropped,
    flush: () => {
      if (buffered !== undefined) buffered.flushSync();
    },
    end: async () => {
      ended = true;
      if (buffered !== undefined) await endInTime(buffered);
    },
  };
}

type BufferedDestination = ReturnType<typeof pino.destination>;

function isBuffered(destination: LogDestination): destination is BufferedDestination {
  return 'flushSync' in destination;
}

async function endInTime(destination: BufferedDestination): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, END_TIMEOUT_MS);
  // Not flush: its callback comes when the write under way is done, and what waits would be lost.
  destination.once('close', resolve).once('error', () => resolve());
  destination.end();
  await promise;
  clearTimeout(timer);
  destination.destroy(); // else it would write the rest, blocking, when the process exits
}

/** Lines beyond are dropped and counted. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
const END_TIMEOUT_MS = 2000;
/** One system call for many audit lines. */
const BUFFERED_BYTES = 32 * 1024;
const FLUSH_INTERVAL_MS = 100;

/** In the background: a slow reader of the log does not hold up signing. */
export function standardOutput(): LogDestination {
  return pino.destination({
    fd: 1,
    sync: false,
    minLength: BUFFERED_BYTES,
    maxLength: MAX_BUFFERED_BYTES,
    maxWrite: 2 * BUFFERED_BYTES, // has to be more than minLength
    periodicFlush: FLUSH_INTERVAL_MS,
  });
}

function pinoLevel(level: LogLevel): string {
  return level === 'off' ? 'silent' : level;
}
