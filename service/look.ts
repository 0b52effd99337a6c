// What a look at a part of a service finds for `server --check`: what would stop a start, and what is to be said of it.
// The look stands in the file that opens its part; it opens nothing for good, and writes nothing.

import type { Violation } from '../common/command-line/violations.ts';
import { errorCode } from '../common/formats/error-code.ts';
import type { Log } from '../common/observe/log.ts';
import type { Logger } from '../common/observe/logger.ts';
import type { ConfigWarning } from '../signer/config/warnings.ts';

export interface CheckFinding {
  readonly violations: readonly Violation[];
  readonly warnings: readonly ConfigWarning[];
  /** Keys that were to be opened, and that a start would be without. */
  readonly unusableKeys?: number;
}

const ignore = (): void => undefined;
/** A look says what it finds. */
export const SILENT_LOG: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

export const SILENT_LOGGER: Logger = {
  module: () => SILENT_LOG,
  droppedLines: () => 0,
  isLosing: () => false,
  confirmed: async () => false,
  flush: () => undefined,
  end: async () => undefined,
};

export const NOTHING: CheckFinding = { violations: [], warnings: [] };

export function together(found: readonly CheckFinding[]): CheckFinding {
  return {
    violations: found.flatMap(({ violations }) => violations),
    warnings: found.flatMap(({ warnings }) => warnings),
    unusableKeys: found.reduce((sum, { unusableKeys = 0 }) => sum + unusableKeys, 0),
  };
}

export function onThisMachine(path: string, problem: string, remedy: string): Violation {
  return { path, problem, remedy, origin: 'what is on this machine' };
}

export function whatAnswers(path: string, problem: string, remedy: string): Violation {
  return { path, problem, remedy, origin: 'what answers there' };
}

export function failureCode(run: () => unknown): string | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return errorCode(error) ?? 'unreadable';
  }
}

/** @param error whose message begins with the option */
export function unusableOption(error: unknown): Violation {
  const message = error instanceof Error ? error.message : String(error);
  const [option = 'tls.file', ...problem] = message.split(': ');
  return onThisMachine(option, problem.join(': '), 'correct the path, or the file');
}
