// Our CBOR, and cbor-x as its oracle: what both write is the same bytes, and what ours reads the other reads alike.

import { Decoder, Encoder } from 'cbor-x';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CborError, type CborValue, decodeCbor, encodeCbor } from '../../common/formats/cbor.ts';

const CODEC = { mapsAsObjects: false, useRecords: false, variableMapSize: true, tagUint8Array: false } as const;
const oracle = { encoder: new Encoder(CODEC), decoder: new Decoder(CODEC) };

const scalar = fc.oneof(
  fc.maxSafeInteger(),
  fc.bigInt({ min: 1n - 2n ** 64n, max: 2n ** 64n - 1n }).map(asRead), // the least one has a test of its own
  fc.string({ unit: 'binary' }),
  fc.boolean(),
  fc.constant(null),
  fc.uint8Array().map((bytes) => Buffer.from(bytes)),
);
const key = fc.oneof(fc.string(), fc.maxSafeInteger());
const item: fc.Arbitrary<CborValue> = fc.letrec<{ item: CborValue }>((tie) => ({
  item: fc.oneof(
    { maxDepth: 3 },
    scalar,
    fc.array(tie('item'), { maxLength: 30 }),
    fc
      .uniqueArray(fc.tuple(key, tie('item')), { selector: ([name]) => name, maxLength: 30 })
      .map((entries) => new Map(entries)),
  ),
})).item;

function asRead(value: bigint): number | bigint {
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

/** For the oracle, which writes whole numbers beyond 32 bits as floats, and bigints as integers. */
function forOracle(value: CborValue): unknown {
  if (typeof value === 'number') return Math.abs(value) < 2 ** 31 ? value : BigInt(value);
  if (Array.isArray(value)) return value.map(forOracle);
  if (value instanceof Map) return new Map([...value].map(([name, member]) => [forOracle(name), forOracle(member)]));
  return value;
}

function fromOracle(value: unknown): unknown {
  if (typeof value === 'bigint') return asRead(value);
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.map(fromOracle);
  if (value instanceof Map) return new Map([...value].map(([name, member]) => [fromOracle(name), fromOracle(member)]));
  return value;
}

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
    fc.assert(
      fc.property(item, (original) => {
        expect(decodeCbor(encodeCbor(original))).toEqual(original);
      }),
    );
  });

  it('writes the bytes that another codec writes', () => {
    fc.assert(
      fc.property(item, (value) => {
        expect(encodeCbor(value).toString('hex')).toBe(oracle.encoder.encode(forOracle(value)).toString('hex'));
      }),
    );
  });

  it('reads what another codec reads, when it reads at all', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc
        .tuple(item, fc.nat(), fc.nat(255))
        .map(([value, at, byte]) =>
          Buffer.from(encodeCbor(value)).map((old, index) => (index === at % 40 ? byte : old)),
        ),
    );
    let read = 0;
    fc.assert(
      fc.property(bytes, (given) => {
        let ours: CborValue;
        try {
          ours = decodeCbor(given);
        } catch {
          return; // stricter than the other: the cases above say where
        }
        read++;
        expect(ours).toEqual(fromOracle(oracle.decoder.decode(given)));
      }),
      { numRuns: 5_000 },
    );
    expect(read).toBeGreaterThan(100);
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

  it('writes and reads the least whole number as RFC 8949 does in its appendix A, where the oracle writes a bignum', () => {
    const least = -(2n ** 64n);
    expect(encodeCbor(least).toString('hex')).toBe('3bffffffffffffffff');
    expect(decodeCbor(Buffer.from('3bffffffffffffffff', 'hex'))).toBe(least);
  });

  it.each([2n ** 64n, -(2n ** 64n) - 1n])('refuses to write %s, which has more than 64 bits', (value) => {
    expect(() => encodeCbor(value)).toThrow(CborError);
  });

  it('refuses to write a number that is not whole', () => {
    expect(() => encodeCbor(0.5)).toThrow(CborError);
  });
});
