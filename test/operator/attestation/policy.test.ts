// Reference values as files and flags have them: what is read, and what is refused rather than guessed.

import { describe, expect, it } from 'vitest';
import { compareRegisters } from '../../../common/attestation/policy.ts';
import {
  combineReferenceValues,
  MAX_ACCEPTED_VALUES,
  parseReferenceFile,
  parseRegisters,
} from '../../../common/attestation/reference-file.ts';

const [A, B, C] = ['aa', 'bb', 'cc'].map((byte) => byte.repeat(48)) as [string, string, string];
const ZERO = '00'.repeat(48);

function file(value: unknown): ReturnType<typeof parseReferenceFile> {
  return parseReferenceFile(Buffer.from(JSON.stringify(value)));
}

describe('a file of reference values', () => {
  it('is as `strongroom eif build` writes it, also with several values of a register', () => {
    const image = { sha256: 'x', size: 1 };
    const values = file({ measurements: { PCR0: [A, B.toUpperCase()], PCR8: ZERO, PCR16: C }, image, inputs: [] });
    expect([...values]).toEqual([
      [0, [A, B]],
      [8, [ZERO]],
      [16, [C]],
    ]);
  });

  it('is as nitro-cli writes it', () => {
    const values = file({ Measurements: { HashAlgorithm: 'Sha384 { ... }', PCR0: A, PCR1: B, PCR2: C } });
    expect([...values.keys()]).toEqual([0, 1, 2]);
  });

  it.each<[string, unknown, string]>([
    ['not an object', [], 'there is no object `measurements`'],
    ['null', null, 'there is no object `measurements`'],
    ['without measurements', { PCR0: A }, 'there is no object `measurements`'],
    ['with a list of measurements', { measurements: [A] }, 'there is no object `measurements`'],
    ['with an unknown member', { measurements: { PCR0: A, pcr1: B } }, 'pcr1 does not name a register'],
    ['with a register that is none', { measurements: { PCR32: A } }, 'PCR32 does not name a register'],
    ['with a register written oddly', { measurements: { PCR00: A } }, 'PCR00 does not name a register'],
    ['with an Arabic digit', { measurements: { 'PCR1\u0663': A } }, 'PCR1\u0663 does not name a register'],
    ['with a short value', { measurements: { PCR0: 'aa' } }, 'PCR0: a value is not 48 bytes of hex'],
    ['with a number', { measurements: { PCR0: 1 } }, 'PCR0: a value is not 48 bytes of hex'],
    ['with no value', { measurements: { PCR0: [] } }, 'PCR0 has 0 values'],
    ['with too many', { measurements: { PCR0: Array(MAX_ACCEPTED_VALUES + 1).fill(A) } }, 'PCR0 has 17 values'],
    [
      'with a debug image',
      { measurements: { PCR0: A, PCR2: [B, ZERO] } },
      'PCR2: zeros are what an enclave in debug mode has',
    ],
  ])('is refused: %s', (_, value, message) => {
    expect(() => file(value)).toThrow(message);
  });

  it('is refused when it names a register twice, or is no JSON', () => {
    for (const text of [`{"measurements":{"PCR0":"${A}","PCR0":"${B}"}}`, '{', ''])
      expect(() => parseReferenceFile(Buffer.from(text))).toThrow('this is no JSON, or it names a member twice');
  });
});

describe('single registers', () => {
  it('add to each other, and stand in place of the register of the file', () => {
    const combined = combineReferenceValues(
      file({ measurements: { PCR0: A, PCR1: A } }),
      parseRegisters([`0=${B}`, `PCR0=${C}`]),
    );
    expect([...combined]).toEqual([
      [0, [B, C]],
      [1, [A]],
    ]);
  });

  it('are refused without PCR0, which alone names an image', () => {
    expect(() => combineReferenceValues(new Map(), parseRegisters([`8=${A}`]))).toThrow('PCR0 is missing');
  });

  it.each(['', '0', `=${A}`, `-1=${A}`, `0x0=${A}`, `32=${A}`, `0==${A}`, `0=${A}aa`])('are refused: %s', (written) => {
    expect(() => parseRegisters([written])).toThrow(/does not name a register|is not 48 bytes of hex/);
  });
});

it('every register of the document and every one asked for is compared', () => {
  const pcrs = new Map([
    [0, Buffer.from(A, 'hex')],
    [1, Buffer.from(B, 'hex')],
    [4, Buffer.from(C, 'hex')],
  ]);
  const compared = compareRegisters({ pcrs }, parseRegisters([`0=${A}`, `1=${A}`, `16=${A}`]));
  expect(compared.map(({ index, result }) => `${index} ${result}`)).toEqual([
    '0 match',
    '1 mismatch',
    '4 unchecked',
    '16 mismatch',
  ]);
});
