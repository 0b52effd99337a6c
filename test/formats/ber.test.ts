// BER to the letter: what a lenient reader lets pass is refused, each with the strict form beside it that is not.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { isStrictBer } from '../../common/formats/ber.ts';
import { vectorPath } from '../support/vectors.ts';

const isStrict = (hex: string): boolean => isStrictBer(Buffer.from(hex.replaceAll(' ', ''), 'hex'));

describe('two forms of one value', () => {
  it.each([
    ['end-of-contents octets with a length', '3080 020102 0000', '3080 020102 0001 00'],
    ['end-of-contents octets in the constructed form', '3080 020102 0000', '3080 020102 2000'],
    ['one of the two octets missing', '3080 020102 0000', '3080 020102 00'],
    ['no end-of-contents octets', '3080 020102 0000', '3080 020102'],
    ['end-of-contents octets in a known length', '3003 020102', '3005 020102 0000'],
    ['end-of-contents octets as a value', '020102', '0000'],
    ['the inner end taken for the outer one', '3080 3080 0000 0000', '3080 3080 0000'],
    ['a length in more octets than it needs', '3003 020102', '308103 020102'],
    ['a length with zeros before it', `048180 ${'aa'.repeat(128)}`, `04820080 ${'aa'.repeat(128)}`],
    ['a length whose octets are missing', '0400', '04ff'],
    ['a length beyond the value around it', '3004 0402aaaa', '3004 0403aaaa'],
    ['a length beyond the end', '0401aa', '0402aa'],
    ['bytes after the value', '0401aa', '0401aa00'],
    ['an indefinite length in a primitive', '2480 0401aa 0000', '0480 0401aa 0000'],
    ['a NULL that holds something', '0500', '0501aa'],
    ['a NULL in the constructed form', '0500', '2500'],
    ['an INTEGER in the constructed form', '020102', '2203 020102'],
    ['an OBJECT IDENTIFIER in the constructed form', '06022a03', '2604 06022a03'],
    ['a SEQUENCE in the primitive form', '3000', '1000'],
    ['a SET in the primitive form', '3100', '1100'],
    ['an OBJECT IDENTIFIER with padding', '06022a03', '06032a8003'],
    ['one whose last arc does not end', '06022a03', '06032a0383'],
    ['one of nothing', '06022a03', '0600'],
    ['a tag in more octets', '8000', '9f1f00'],
  ])('%s', (_what, strict, lenient) => {
    expect([isStrict(strict), isStrict(lenient)]).toEqual([true, false]);
  });
});

it('an arc with zeros in its middle is an arc', () => {
  expect(isStrict('0604 2a 818003')).toBe(true);
});

it('nesting ends at sixteen', () => {
  const nested = (depth: number): string => '3080'.repeat(depth) + '0000'.repeat(depth);
  expect([isStrict(nested(17)), isStrict(nested(18)), isStrict(nested(3000))]).toEqual([true, false, false]);
});

it('nothing is no value', () => {
  expect(isStrict('')).toBe(false);
});

const folder = vectorPath('kms-cms');

it.skipIf(folder === undefined)('what KMS sent is strict', () => {
  for (const name of ['input_ber', 'input_ber_w_ctx']) {
    expect(isStrictBer(readFileSync(`${folder}/${name}.bin`))).toBe(true);
  }
});
