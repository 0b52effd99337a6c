// What a guest's console says about its checks, line by line: `ok - NAME`, `not ok - NAME: why`, `skipped - NAME: why`,
// and at its end `GUEST_DONE <exit code>`. A guest that does not get there has failed, whatever it said before. Then
// what is found from outside.

import type { GuestEnd } from './boot-guest.ts';
import { type GuestBoot, NotApplicable, type Tally } from './suite.ts';

export interface ResultReader {
  readonly tally: Tally;
  line(line: string): void;
  /** Judges the guest as a whole: what is wrong with its end is a failure of its own. */
  ended(end: GuestEnd): void;
}

/** @param show prints the lines that are results */
export function readResults(
  show: (line: string) => void,
  { outside = [], withoutProgram }: Pick<GuestBoot, 'outside' | 'withoutProgram'> = {},
): ResultReader {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 };
  const lines: string[] = [];
  let exitCode: string | undefined;
  const count = (line: string): void => {
    const [, kind] = /^(ok|not ok|skipped) - /.exec(line) ?? [];
    if (kind === 'ok') tally.passed += 1;
    else if (kind === 'not ok') tally.failed += 1;
    else if (kind === 'skipped') tally.skipped += 1;
    if (kind !== undefined) show(line);
  };
  return {
    tally,
    line(line) {
      lines.push(line);
      count(line);
      exitCode ??= /^GUEST_DONE (\d+)$/.exec(line)?.[1];
    },
    ended(end) {
      const problem = withoutProgram === true ? lateness(end) : problemOf(end, exitCode, tally);
      if (problem !== undefined) count(`not ok - the guest: ${problem}`);
      for (const { name, check } of outside) count(resultOf(name, () => check(lines, end)));
    },
  };
}

function resultOf(name: string, check: () => void): string {
  try {
    check();
    return `ok - ${name}`;
  } catch (error) {
    const verdict = error instanceof NotApplicable ? 'skipped' : 'not ok';
    return `${verdict} - ${name}: ${String(error instanceof Error ? error.message : error).replaceAll('\n', ' | ')}`;
  }
}

function lateness({ inTime, seconds }: GuestEnd): string | undefined {
  return inTime ? undefined : `it was stopped after ${seconds.toFixed(0)} s`;
}

function problemOf(end: GuestEnd, exitCode: string | undefined, tally: Tally): string | undefined {
  if (!end.inTime) return lateness(end);
  if (exitCode === undefined) return 'it ended before its tests did';
  if (exitCode !== '0' && tally.failed === 0) return `its program ended with exit code ${exitCode}`;
  if (tally.passed + tally.failed + tally.skipped === 0) return 'it ran no test';
  return undefined;
}
