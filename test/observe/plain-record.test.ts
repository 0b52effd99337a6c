// The short way to a log line gives the very line that pino gives, or none.

import * as fc from 'fast-check';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { plainLine } from '../../observe/plain-record.ts';

const SECRETS = new Set(['token', 'password']);

function pinoLine(fields: object, message: string): string {
  let line = '';
  const options = { base: null, timestamp: false, formatters: { level: (label: string) => ({ level: label }) } };
  const log = pino(options, { write: (text: string) => (line += text) }).child({ module: 'http' });
  log.info(fields, message);
  return line.trimEnd();
}

const shortLine = (fields: object, message: string) =>
  plainLine('{"level":"info","module":"http"', fields, message, SECRETS);

const name = fc.constantFrom('key', 'client_ip', 'status', 'reason', 'request_id', 'duration_ms', 'audit', '1');
const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.constant('a"b\\c\n\u2028\ud800'));
const plain = fc.oneof(
  text,
  fc.boolean(),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constant(undefined),
);

describe('a plain record', () => {
  it('has the line that pino writes', () => {
    fc.assert(
      fc.property(fc.dictionary(name, plain, { noNullPrototype: true }), text, (fields, message) => {
        expect(shortLine(fields, message)).toBe(pinoLine(fields, message));
      }),
    );
  });

  it.each([
    ['an object', { key: {} }],
    ['a list', { key: ['x'] }],
    ['an error', { err: new Error('x') }],
    ['null', { key: null }],
    ['a number that JSON has not', { key: Number.NaN }],
    ['a bigint', { key: 1n }],
    ['a function', { key: () => 'x' }],
    ['a name that may hold a secret', { token: 'x' }],
    ['a name that the line has already', { msg: 'x' }],
    ['the time', { time: 'x' }],
  ])('is none: %s', (_case, fields) => expect(shortLine(fields, 'request')).toBeUndefined());
});
