// What the console of a guest is taken for. The guest itself runs under `make test-guest`.

import { expect, it } from 'vitest';
import type { GuestEnd } from './boot-guest.ts';
import { readResults } from './results.ts';
import { type GuestBoot, NotApplicable } from './suite.ts';

const IN_TIME: GuestEnd = { inTime: true, exitCode: 0, seconds: 12 };
const STOPPED: GuestEnd = { inTime: false, exitCode: null, seconds: 180.4 };

function read(lines: readonly string[], end = IN_TIME, boot: Pick<GuestBoot, 'outside' | 'withoutProgram'> = {}) {
  const shown: string[] = [];
  const results = readResults((line) => shown.push(line), boot);
  for (const line of lines) results.line(line);
  results.ended(end);
  return { ...results.tally, shown };
}

it('lines of results are counted and shown, others are neither', () => {
  const lines = [
    '[    0.1] Linux',
    'ok - one (3 ms)',
    'not ok - two: why',
    'skipped - three: why',
    'it is not ok - at all',
    'GUEST_DONE 1',
  ];
  expect(read(lines)).toEqual({ passed: 1, failed: 1, skipped: 1, shown: lines.slice(1, 4) });
});

it('a guest that ends before its tests do has failed, whatever it said before', () => {
  expect(read(['ok - one'])).toMatchObject({
    passed: 1,
    failed: 1,
    shown: ['ok - one', 'not ok - the guest: it ended before its tests did'],
  });
});

it('a guest that was stopped has failed, even behind its last line', () => {
  expect(read(['ok - one', 'GUEST_DONE 0'], STOPPED)).toMatchObject({
    failed: 1,
    shown: ['ok - one', 'not ok - the guest: it was stopped after 180 s'],
  });
});

it('a program that fails without naming a test, and one that ran none, have failed', () => {
  expect(read(['ok - one', 'GUEST_DONE 70'])).toMatchObject({
    failed: 1,
    shown: ['ok - one', expect.stringContaining('exit code 70')],
  });
  expect(read(['GUEST_DONE 0'])).toMatchObject({ failed: 1, shown: ['not ok - the guest: it ran no test'] });
});

it('a check from outside that says nothing about this guest counts as skipped, with its reason', () => {
  const check = (): never => {
    throw new NotApplicable('Linux 6.1 has no such setting');
  };
  const boot: GuestBoot = { ramdisks: [], withoutProgram: true, outside: [{ name: 'it is off', check }] };
  const shown = ['skipped - it is off: Linux 6.1 has no such setting'];
  expect(read([], IN_TIME, boot)).toEqual({ passed: 0, failed: 0, skipped: 1, shown });
});

it('what is found from outside counts as a result, for or against', () => {
  const boot: GuestBoot = {
    ramdisks: [],
    withoutProgram: true,
    outside: [
      { name: 'it says so', check: (lines) => expect(lines).toContain('so') },
      {
        name: 'it says more',
        check() {
          throw new Error('it does not,\nnor less');
        },
      },
    ],
  };
  const shown = ['ok - it says so', 'not ok - it says more: it does not, | nor less'];
  expect(read(['so'], IN_TIME, boot)).toEqual({ passed: 1, failed: 1, skipped: 0, shown });
  expect(read(['so'], STOPPED, boot)).toMatchObject({ passed: 1, failed: 2 });
});
