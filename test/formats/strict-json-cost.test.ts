// What a body costs the main thread, whatever is in it: no more than a few looks at each of its bytes. Measured against
// one look at each of as many bytes, in the same run, so that a slow machine slows both; and in CPU time of the thread,
// so that what others do meanwhile does not count. A body that a regular expression, a search or a callback is made for
// each few bytes of costs twenty looks and more.

import { expect, it } from 'vitest';
import { parseStrictJson } from '../../common/formats/strict-json.ts';

const BODY_BYTES = 2_000_000;
const MOST_LOOKS = 14;
/** The kernel counts what a running thread takes in steps of some milliseconds. */
const MEASURED_MICROSECONDS = 100_000;
const UNMEASURED_RUNS = 5;
/** Others empty the caches: the cheapest round counts. While that is too dear there are more. */
const MOST_ROUNDS = 20;

const filled = (piece: string, bytes = BODY_BYTES): string => piece.repeat(Math.ceil(bytes / piece.length));
const items = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join(',');

const BODIES: Readonly<Record<string, string>> = {
  'an e in every byte': `[${filled('e')}`,
  'exponents that do not end': `[1${filled('e')}]`,
  exponents: `[${items(19_990, () => '1e1')}${filled(' ', 1_900_000)}]`,
  'numbers that are no integers, as many as are allowed': `[${items(4_900, (index) => `${index}.${'1'.repeat(400)}`)}]`,
  'objects with a number that is no integer': `[-1,${items(2_400, (index) => `{"name ${index}":1}`)}${filled(' ', 1_900_000)}]`,
  'one long number': `[${filled('1')}]`,
  'one long fraction': `[0.${filled('1')}]`,
  'space after a name': `{"a"${filled(' ')}:1}`,
  'space after a value': `["a"${filled(' ')}]`,
  'space behind a character of two bytes': `["é"${filled(' ')}]`,
  'a quote in every two bytes': `["${filled('\\"')}"]`,
  'a quote in every two bytes of a name': `{"${filled('\\"')}":1}`,
  'escaped backslashes': `["${filled('\\\\')}"]`,
  'escapes in names': `[${items(900, (index) => `{${items(10, (name) => `"${filled('\\u0041', 120)}${index}${name}":1`)}}`)}]`,
  'names without commas': `{${Array.from({ length: 300_000 }, (_, index) => `"${index.toString(36)}"`).join(':')}`,
  'members, as many as are allowed': `[${items(20, (object) => `{${items(990, (name) => `"${`${object}-${name}`.padEnd(92, 'x')}":1`)}}`)}]`,
  'objects, as many as are allowed': `[${items(9_990, (index) => `{"name ${index}":1}`)}${filled(' ', 1_700_000)}]`,
  'names that differ in their last character': `[${items(300, () => `{${items(15, (index) => `"${'x'.repeat(400)}${index}":1`)}}`)}]`,
  'strings that follow each other': `[${filled('""')}`,
  'literals that follow each other': `[${filled('true')}`,
  'objects in objects': filled('{"a":'),
};

const LOOKED_AT = Buffer.alloc(BODY_BYTES, 'e');

it.each(Object.entries(BODIES))('a body of %s', (_name, text) => {
  const body = Buffer.from(text).subarray(0, BODY_BYTES);
  let looks = Number.POSITIVE_INFINITY;
  for (let round = 0; round < MOST_ROUNDS && looks >= MOST_LOOKS; round++) {
    const parse = microsecondsOf(() => parseStrictJson(body));
    looks = Math.min(looks, parse / microsecondsOf(() => eachByteOnce(LOOKED_AT)));
  }
  expect(looks).toBeLessThan(MOST_LOOKS);
});

/** CPU time of one run, once it is compiled. */
function microsecondsOf(work: () => unknown): number {
  for (let run = 0; run < UNMEASURED_RUNS; run++) work();
  const before = process.threadCpuUsage();
  for (let runs = 1; ; runs++) {
    work();
    const { user, system } = process.threadCpuUsage(before);
    if (user + system >= MEASURED_MICROSECONDS) return (user + system) / runs;
  }
}

function eachByteOnce(body: Uint8Array): number {
  let found = 0;
  for (let at = 0; at < body.length; at++) if (body[at] === 0x65) found += 1;
  return found;
}
