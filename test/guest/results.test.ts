// What the console of a guest is taken for. The guest itself runs under `make test-guest`.

import { expect, test } from 'vitest';
import { readResults } from './results.ts';

const IN_TIME = { inTime: true, exitCode: 0, seconds: 12 };

function read(lines: readonly string[], end = IN_TIME) {
  const shown: string[] = [];
  const results = readResults((line) => shown.push(line));
  for (const line of lines) results.line(line);
  const problem = results.ended(end);
  return { ...results.tally, problem, shown };
}

test('lines of results are counted and shown, others are neither', () => {
  const lines = [
    '[    0.1] Linux',
    'ok - one (3 ms)',
    'not ok - two: why',
    'skipped - three: why',
    'it is not ok - at all',
    'GUEST_DONE 1',
  ];
  expect(read(lines)).toEqual({ passed: 1, failed: 1, skipped: 1, problem: undefined, shown: lines.slice(1, 4) });
});

test('a guest that ends before its tests do has failed, whatever it said before', () => {
  expect(read(['ok - one'])).toMatchObject({ passed: 1, failed: 1, problem: 'it ended before its tests did' });
});

test('a guest that was stopped has failed, even behind its last line', () => {
  const end = { inTime: false, exitCode: null as never, seconds: 180.4 };
  expect(read(['ok - one', 'GUEST_DONE 0'], end)).toMatchObject({ failed: 1, problem: 'it was stopped after 180 s' });
});

test('a program that fails without naming a test, and one that ran none, have failed', () => {
  expect(read(['ok - one', 'GUEST_DONE 70'])).toMatchObject({
    failed: 1,
    problem: expect.stringContaining('exit code 70'),
  });
  expect(read(['GUEST_DONE 0'])).toMatchObject({ failed: 1, problem: 'it ran no test' });
});
