// The master key: sub-keys as RFC 5869 makes them, one a purpose, and nothing left after wiping.

import { hkdfSync, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { MasterKey, PURPOSES, type Purpose } from '../../signer/chamber/master-key.ts';

const ALL = Object.keys(PURPOSES) as Purpose[];

it.each(ALL)('the sub-key for %s is HKDF-SHA256 without a salt, as OpenSSL computes it', (purpose) => {
  const bytes = randomBytes(32);
  const expected = Buffer.from(hkdfSync('sha256', bytes, Buffer.alloc(0), PURPOSES[purpose], 32));
  expect(new MasterKey(bytes, 'off').subKey(purpose)).toEqual(expected);
});

it('sub-keys of two purposes differ', () => {
  const masterKey = MasterKey.generate('off');
  expect(new Set(ALL.map((purpose) => masterKey.subKey(purpose).toString('hex'))).size).toBe(ALL.length);
});

it('the caller of the constructor is left with zeros', () => {
  const bytes = randomBytes(32);
  expect(new MasterKey(bytes, 'off').subKey('tokenHmac')).toHaveLength(32);
  expect(bytes).toEqual(Buffer.alloc(32));
});

it('generated keys differ, also when they are mixed with the same bytes', () => {
  const mix = randomBytes(32);
  const keys = [MasterKey.generate('off', mix), MasterKey.generate('off', mix), MasterKey.generate('off')];
  expect(new Set(keys.map((key) => key.use((bytes) => bytes.toString('hex')))).size).toBe(3);
});

it('wiping zeroes the bytes where they lie and refuses everything after it', () => {
  const masterKey = MasterKey.generate('best_effort');
  const held = masterKey.use((bytes) => bytes);
  masterKey.wipe();
  expect(held).toEqual(Buffer.alloc(32));
  expect(() => masterKey.subKey('keyEncryption')).toThrow('the master key is not available');
  expect(() => masterKey.use((bytes) => bytes)).toThrow('the master key is not available');
});
