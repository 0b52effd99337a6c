// Addresses in text, held to the test cases of EIP-55.

import { expect, it } from 'vitest';
import { canonicalAddress } from '../../common/formats/address.ts';

const CHECKSUMMED = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
] as const;
const ONE_CASE = [
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77',
  '0x27b1fdb04752bbc536007a920d24acb045561c26',
] as const;
const SAMPLE = CHECKSUMMED[0];

it.each([...CHECKSUMMED, ...ONE_CASE])('%s is the address of its lower-case digits', (text) => {
  expect(canonicalAddress(text)).toBe(text.toLowerCase());
});

it.each([
  SAMPLE.toLowerCase(),
  `0x${SAMPLE.slice(2).toUpperCase()}`,
  `0X${SAMPLE.slice(2).toUpperCase()}`,
  SAMPLE.slice(2),
  SAMPLE.slice(2).toLowerCase(),
])('%s is the same address in another spelling', (text) => {
  expect(canonicalAddress(text)).toBe(SAMPLE.toLowerCase());
});

it('one letter in the wrong case is a wrong checksum, wherever it is', () => {
  for (const text of CHECKSUMMED) {
    for (const [at, letter] of [...text].entries()) {
      if (at < 2 || !/[a-f]/i.test(letter)) continue;
      const other = letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase();
      const mistyped = text.slice(0, at) + other + text.slice(at + 1);
      expect(canonicalAddress(mistyped)).toEqual({ refused: 'wrong_checksum' });
    }
  }
});

it('one digit for another is a wrong checksum', () => {
  expect(canonicalAddress(SAMPLE.replace('6053', '6054'))).toEqual({ refused: 'wrong_checksum' });
});

it.each(['', '0x', SAMPLE.slice(0, -1), `${SAMPLE}0`, `${SAMPLE}00`, SAMPLE.replace('5', 'g'), ` ${SAMPLE}`, 'x.eth'])(
  '%j is no address',
  (text) => expect(canonicalAddress(text)).toEqual({ refused: 'not_an_address' }),
);
