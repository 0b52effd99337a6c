// What a guest's console says about its checks, line by line: `ok - NAME`, `not ok - NAME: why`, `skipped - NAME: why`, and at its
// end `GUEST_DONE <exit code>`. A guest that does not get there has failed, whatever it said before.

import type { GuestEnd } from './boot-guest.ts';

export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
}

export interface ResultReader {
  readonly tally: Tally;
  line(line: string): void;
  /** @returns why the guest as a whole has failed, counted as one failure; undefined when it has not */
  ended(end: GuestEnd): string | undefined;
}

/** @param show prints the lines that are results */
export function readResults(show: (line: string) => void): ResultReader {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  let exitCode: string | undefined;
  return {
    tally,
    line(line) {
      const [, kind] = /^(ok|not ok|skipped) - /.exec(line) ?? [];
      if (kind === 'ok') tally.passed += 1;
      else if (kind === 'not ok') tally.failed += 1;
      else if (kind === 'skipped') tally.skipped += 1;
      if (kind !== undefined) show(line);
      exitCode ??= /^GUEST_DONE (\d+)$/.exec(line)?.[1];
    },
    ended({ inTime, seconds }) {
      const problem = problemOf(inTime, seconds, exitCode, tally);
      if (problem !== undefined) tally.failed += 1;
      return problem;
    },
  };
}

function problemOf(inTime: boolean, seconds: number, exitCode: string | undefined, tally: Tally): string | undefined {
  if (!inTime) return `it was stopped after ${seconds.toFixed(0)} s`;
  if (exitCode === undefined) return 'it ended before its tests did';
  if (exitCode !== '0' && tally.failed === 0) return `its program ended with exit code ${exitCode}`;
  if (tally.passed + tally.failed + tally.skipped === 0) return 'it ran no test';
  return undefined;
}
