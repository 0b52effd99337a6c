import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CborError, decodeCbor, encodeCbor } from '../../formats/cbor.ts';

const decodeHex = (hex: string) => decodeCbor(Buffer.from(hex, 'hex'), { tag: 18 });

describe('CBOR of attestation', () => {
  it.each([
    ['a map with an indefinite length', 'bf616101ff', new Map([['a', 1]])],
    ['an array with an indefinite length', '9f0102ff', [1, 2]],
    ['the expected tag, which is dropped', 'd28101', [1]],
    ['a negative integer', '3822', -35],
    ['milliseconds, as an integer of 64 bits', '1b000001a088b5a200', 1_789_000_000_000],
  ])('reads %s', (_what, hex, value) => {
    expect(decodeHex(hex)).toEqual(value);
  });

  it.each([
    ['a repeated key', 'a2616101616102'],
    ['a key repeated in another encoding', 'a20102180103'],
    ['a repeated key in a nested map', 'a16161a201020103'],
    ['bytes after the item', '0102'],
    ['nothing', ''],
    ['an array that is cut off', '9f01'],
    ['a string longer than what is left', '5a7fffffff00'],
    ['more members than there are bytes', '9b00000000ffffffff01'],
    ['nesting without end', '81'.repeat(100_000)],
    ['an indefinite byte string', '5f4101ff'],
    ['text that is not UTF-8', '61ff'],
    ['a float', 'f97e00'],
    ['undefined', 'f7'],
    ['another tag', 'c11a00'],
    ['a tag inside', '81d201'],
    ['a bignum', 'c249010000000000000000'],
    ['a map key that is a boolean', 'a1f501'],
    ['a lone break', 'ff'],
    ['a reserved head', '1c'],
  ])('refuses %s', (_what, hex) => {
    expect(() => decodeHex(hex)).toThrow(CborError);
  });

  it('gives back what it wrote', () => {
    const scalar = fc.oneof(
      fc.maxSafeInteger(),
      fc.string(),
      fc.boolean(),
      fc.constant(null),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    );
    const key = fc.oneof(fc.string(), fc.integer());
    const value = fc.oneof(
      scalar,
      fc.array(scalar),
      fc.uniqueArray(fc.tuple(key, scalar), { selector: ([k]) => k }).map((entries) => new Map(entries)),
    );
    fc.assert(
      fc.property(value, (original) => {
        expect(decodeCbor(encodeCbor(original))).toEqual(original);
      }),
    );
  });

  it('never throws anything but its own error, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          decodeCbor(bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(CborError);
        }
      }),
      { numRuns: 20_000 },
    );
  });

  it('refuses to write a number that is not whole', () => {
    expect(() => encodeCbor(0.5)).toThrow(CborError);
  });
});
