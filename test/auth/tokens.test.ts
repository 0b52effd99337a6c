// Token and accessor formats, and the keyed digest.

import { createHmac, randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { createAccessor, createToken, tokenDigest } from '../../signer/auth/tokens.ts';

it('a client token is sr_client_ and 43 base64url characters of 32 bytes', () => {
  const token = createToken('client').toString();
  expect(token).toMatch(/^sr_client_[A-Za-z0-9_-]{43}$/);
  expect(Buffer.from(token.slice('sr_client_'.length), 'base64url')).toHaveLength(32);
});

it('a management token is sr_mgmt_ and 43 base64url characters', () => {
  expect(createToken('management').toString()).toMatch(/^sr_mgmt_[A-Za-z0-9_-]{43}$/);
});

it('no two tokens and no two accessors are the same', () => {
  expect(new Set(Array.from({ length: 1000 }, () => createToken('client').toString())).size).toBe(1000);
  expect(new Set(Array.from({ length: 1000 }, createAccessor)).size).toBe(1000);
});

it('an accessor is acc_ and 32 hex characters', () => {
  expect(createAccessor()).toMatch(/^acc_[0-9a-f]{32}$/);
});

it('the digest is HMAC-SHA256 of the token bytes under the key', () => {
  const bytes = (maxLength: number) => fc.uint8Array({ maxLength, size: 'max' });
  fc.assert(
    fc.property(bytes(64), bytes(300), (key, token) => {
      expect(tokenDigest(key, token)).toBe(createHmac('sha256', key).update(token).digest('hex'));
    }),
  );
});

it('the digest is that of RFC 4231, test cases 1 and 2', () => {
  expect(tokenDigest(Buffer.alloc(20, 0x0b), Buffer.from('Hi There'))).toBe(
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  );
  expect(tokenDigest(Buffer.from('Jefe'), Buffer.from('what do ya want for nothing?'))).toBe(
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  );
});

it('a key that HMAC would hash first is refused', () => {
  expect(() => tokenDigest(new Uint8Array(65), Buffer.from('x'))).toThrow();
});

it('the same token has another digest under another key', () => {
  const token = createToken('client');
  const [one, other] = [randomBytes(32), randomBytes(32)];
  expect(tokenDigest(one, token)).not.toBe(tokenDigest(other, token));
});
