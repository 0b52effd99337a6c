// What the looks of `server --check` find: what would stop a start, and what is to be said of it. Each look stands in
// the file that opens its part, takes the start's own steps as far as they change nothing, and adds what it finds.

import type { Violation } from '../common/command-line/violations.ts';
import { errorCode } from '../common/formats/error-code.ts';
import type { Logger } from '../common/observe/logger.ts';
import type { ConfigWarning } from '../signer/config/warnings.ts';
import type { Marks, PublicKeyHex, StoreFloor } from '../signer/slashing/types.ts';

export interface CheckFinding {
  readonly violations: Violation[];
  readonly warnings: ConfigWarning[];
  /** Keys that were to be opened, and that a start would be without. */
  unusableKeys: number;
}

export function nothingFound(): CheckFinding {
  return { violations: [], warnings: [], unusableKeys: 0 };
}

/** What a store says of itself without its key. Nothing verifies it; a start does, with the codes of the rows. */
export interface StoreGlimpse {
  /** `new`: the start makes its tables; `old`: it upgrades them. */
  readonly state: 'new' | 'old' | 'good';
  readonly floor?: StoreFloor | null | undefined;
  /** The highest of each key. */
  readonly marks?: readonly KeyGlimpse[];
  /** The marks are of every key that has a record. */
  readonly isWhole?: boolean;
}

type KeyGlimpse = Marks & { readonly key: PublicKeyHex };

const ignore = (): void => undefined;

/** For the steps of a start: the looks say what they find. */
export const SILENT_LOGGER: Logger = {
  module: () => ({ debug: ignore, info: ignore, warn: ignore, error: ignore }),
  droppedLines: () => 0,
  isLosing: () => false,
  confirmed: async () => false,
  flush: ignore,
  end: async () => undefined,
};

export function onThisMachine(path: string, problem: string, remedy: string): Violation {
  return { path, problem, remedy, origin: 'what is on this machine' };
}

export function whatAnswers(path: string, problem: string, remedy: string): Violation {
  return { path, problem, remedy, origin: 'what answers there' };
}

/** Undefined when `run` does what a start does, and it succeeds. */
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
