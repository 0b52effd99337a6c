import { expect, it } from 'vitest';
import type { LogFields, ModuleLogs } from '../../common/observe/log.ts';
import { createLogger } from '../../common/observe/logger.ts';
import { createPlainLogger } from '../../common/observe/plain-logger.ts';

const NOW = Date.parse('2026-11-22T08:00:00.000Z');
const LEVELS = ['debug', 'info', 'warn', 'error'] as const;
const PLANTED = 'sr_client_THIS_IS_A_TEST_SECRET';
const RECORDS: readonly (readonly [LogFields, string])[] = [
  [{}, 'a message'],
  [{ port: 9443, peer: '192.0.2.1', absent: undefined, none: null, live: false }, 'with fields'],
  [{ reason: 'a "quoted"\nline \u2028 and a lone \ud800' }, 'a message\nof two lines'],
  [{ list: [1, 'two', { three: 3 }], detail: { cid: 3, code: 'ECONNREFUSED' }, seconds: 0.001 }, 'nested'],
  [{ token: PLANTED, headers: { authorization: PLANTED } }, 'a secret that a call site let through'],
];

function linesOf(logs: ModuleLogs<'server'>, lines: readonly string[]): string {
  for (const level of LEVELS) for (const [fields, message] of RECORDS) logs.module('server')[level](fields, message);
  return lines.join('').replace(/"time":"[^"]+"/g, '"time":""');
}

it('both log writers write the same line, byte for byte, but for the time', () => {
  const [plain, pino]: [string[], string[]] = [[], []];
  const own = linesOf(createPlainLogger({ write: (line) => plain.push(line) }, { now: () => NOW }), plain);
  const theirs = linesOf(createLogger({ level: 'debug', format: 'json' }, { write: (line) => pino.push(line) }), pino);
  expect(own).toBe(theirs);
  expect(own.split('\n')).toHaveLength(LEVELS.length * RECORDS.length + 1);
  expect(own).not.toContain(PLANTED);
  const time = /^\{"level":"debug","time":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"/;
  expect(time.exec(plain[0] ?? '')?.[1]).toBe('2026-11-22T08:00:00.000Z');
  expect(pino[0]).toMatch(time);
});
