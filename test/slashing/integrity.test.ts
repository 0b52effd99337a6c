// Integrity codes of rows: equal for equal rows only, and with a key nobody else can make them.

import { createHash, createHmac } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { INTEGRITY_CODE_BYTES, type IntegrityField, rowIntegrity } from '../../signer/slashing/history/codes.ts';

const genesisValidatorsRoot = new Uint8Array(32).fill(1);
const publicKey = new Uint8Array(48).fill(2);
const key = new Uint8Array(32).fill(3);
const textOf = (fields: IntegrityField[]) =>
  JSON.stringify(fields.map((one) => (one instanceof Uint8Array ? hexOf(one) : one)));
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** The encoding, written out once more. */
const ENCODED = Buffer.concat([
  Buffer.from([5]),
  Buffer.from('block'),
  genesisValidatorsRoot,
  publicKey,
  Buffer.from([1]),
  Buffer.from('3ff0000000000000', 'hex'),
  Buffer.from([0]),
  Buffer.from([2, 0, 0, 0, 2, 0xab, 0xcd]),
]);
const FIELDS: IntegrityField[] = [1, null, Uint8Array.of(0xab, 0xcd)];

it('with a key the code is HMAC-SHA256, cut to 16 bytes', () => {
  const expected = createHmac('sha256', key).update(ENCODED).digest().subarray(0, INTEGRITY_CODE_BYTES);
  expect(hexOf(rowIntegrity({ key, genesisValidatorsRoot }).code('block', publicKey, FIELDS))).toBe(hexOf(expected));
});

it('without a key the code is SHA-256, cut to 16 bytes', () => {
  const expected = createHash('sha256').update(ENCODED).digest().subarray(0, INTEGRITY_CODE_BYTES);
  expect(hexOf(rowIntegrity({ genesisValidatorsRoot }).code('block', publicKey, FIELDS))).toBe(hexOf(expected));
});

it('another kind of row, network, public key, key or kind of code is another code', () => {
  const codes = [
    rowIntegrity({ key, genesisValidatorsRoot }).code('block', publicKey, FIELDS),
    rowIntegrity({ key, genesisValidatorsRoot }).code('blocks', publicKey, FIELDS),
    rowIntegrity({ key, genesisValidatorsRoot: publicKey.subarray(0, 32) }).code('block', publicKey, FIELDS),
    rowIntegrity({ key, genesisValidatorsRoot }).code('block', new Uint8Array(48), FIELDS),
    rowIntegrity({ key: new Uint8Array(32), genesisValidatorsRoot }).code('block', publicKey, FIELDS),
    rowIntegrity({ genesisValidatorsRoot }).code('block', publicKey, FIELDS),
  ];
  expect(new Set(codes.map(hexOf)).size).toBe(codes.length);
});

it('different fields never have the same code, however they are cut', () => {
  const field = fc.oneof(fc.constant(null), fc.maxSafeNat(), fc.uint8Array({ maxLength: 12 }));
  const integrity = rowIntegrity({ genesisValidatorsRoot });
  fc.assert(
    fc.property(fc.array(field, { maxLength: 4 }), fc.array(field, { maxLength: 4 }), (one, other) => {
      const isSame = textOf(one) === textOf(other);
      expect(integrity.verify(integrity.code('row', publicKey, one), 'row', publicKey, other)).toBe(isSame);
    }),
  );
});

it('a code that is too short or too long is no code', () => {
  const integrity = rowIntegrity({ key, genesisValidatorsRoot });
  const code = integrity.code('block', publicKey, FIELDS);
  expect(integrity.verify(code, 'block', publicKey, FIELDS)).toBe(true);
  expect(integrity.verify(code.subarray(0, 15), 'block', publicKey, FIELDS)).toBe(false);
  expect(integrity.verify(new Uint8Array(0), 'block', publicKey, FIELDS)).toBe(false);
  expect(integrity.verify(Buffer.concat([code, Buffer.alloc(1)]), 'block', publicKey, FIELDS)).toBe(false);
});

it('the key is copied, and after wiping no code is made any more', () => {
  const given = Uint8Array.from(key);
  const integrity = rowIntegrity({ key: given, genesisValidatorsRoot });
  const before = hexOf(integrity.code('block', publicKey, FIELDS));
  given.fill(0);
  expect(hexOf(integrity.code('block', publicKey, FIELDS))).toBe(before);
  integrity.wipe();
  expect(() => integrity.code('block', publicKey, FIELDS)).toThrow(/wiped/);
});

it('a mask is the one-step derivation of NIST SP 800-56C: counter, secret, public key and nonce; none without a key', () => {
  const nonce = new Uint8Array(16).fill(4);
  const secret = createHmac('sha256', key).update('strongroom digest mask v1').digest();
  const counter = Buffer.from('00000001', 'hex');
  const expected = createHash('sha256')
    .update(Buffer.concat([counter, secret, publicKey, nonce]))
    .digest();
  const integrity = rowIntegrity({ key, genesisValidatorsRoot });
  expect(hexOf(integrity.mask(publicKey, nonce))).toBe(hexOf(expected));
  expect(hexOf(integrity.mask(publicKey, new Uint8Array(16)))).not.toBe(hexOf(expected));
  expect(hexOf(integrity.mask(publicKey, nonce))).toBe(hexOf(expected));
  expect(() => integrity.mask(publicKey, new Uint8Array(15))).toThrow();
  expect(() => rowIntegrity({ genesisValidatorsRoot }).mask(publicKey, nonce)).toThrow('needs a key');
  integrity.wipe();
  expect(() => integrity.mask(publicKey, nonce)).toThrow('wiped');
});
