// Token and accessor formats, and the keyed digest.

import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createAccessor, createToken, tokenDigest } from '../../enclave/auth/tokens.ts';

test('a client token is sr_client_ and 43 base64url characters of 32 bytes', () => {
  const token = createToken('client').toString();
  expect(token).toMatch(/^sr_client_[A-Za-z0-9_-]{43}$/);
  expect(Buffer.from(token.slice('sr_client_'.length), 'base64url')).toHaveLength(32);
});

test('a management token is sr_mgmt_ and 43 base64url characters', () => {
  expect(createToken('management').toString()).toMatch(/^sr_mgmt_[A-Za-z0-9_-]{43}$/);
});

test('no two tokens and no two accessors are the same', () => {
  expect(new Set(Array.from({ length: 1000 }, () => createToken('client').toString())).size).toBe(1000);
  expect(new Set(Array.from({ length: 1000 }, createAccessor)).size).toBe(1000);
});

test('an accessor is acc_ and 32 hex characters', () => {
  expect(createAccessor()).toMatch(/^acc_[0-9a-f]{32}$/);
});

test('the digest is HMAC-SHA256 of the token bytes under the key', () => {
  const key = randomBytes(32);
  const token = createToken('client');
  expect(tokenDigest(createSecretKey(key), token)).toBe(createHmac('sha256', key).update(token).digest('hex'));
});

test('the same token has another digest under another key', () => {
  const token = createToken('client');
  const [one, other] = [createSecretKey(randomBytes(32)), createSecretKey(randomBytes(32))];
  expect(tokenDigest(one, token)).not.toBe(tokenDigest(other, token));
});
