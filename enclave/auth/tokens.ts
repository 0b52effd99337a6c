// Tokens: their two formats, and the keyed digest under which they are known. A token itself is shown once, to whoever
// it was made for, and kept nowhere. Looking a digest up in a Map takes a time that depends on the digest only, and
// nobody without the key can choose digests, so the look-up tells nothing about a token that is nearly right.

import { createHmac, type KeyObject, randomBytes } from 'node:crypto';

export type TokenKind = 'client' | 'management';

const PREFIX = { client: 'sr_client_', management: 'sr_mgmt_' } as const;
const TOKEN_BYTES = 32;
const ACCESSOR_BYTES = 16;

/** A fresh token of 256 random bits (`sr_client_` or `sr_mgmt_` and 43 base64url characters); the caller wipes it. */
export function createToken(kind: TokenKind): Buffer {
  const secret = randomBytes(TOKEN_BYTES);
  const token = Buffer.from(PREFIX[kind] + secret.toString('base64url'), 'ascii');
  secret.fill(0);
  return token;
}

/** A fresh accessor: names a token in logs and routes, and says nothing about it. */
export function createAccessor(): string {
  return `acc_${randomBytes(ACCESSOR_BYTES).toString('hex')}`;
}

/**
 * What a token is stored and looked up as: HMAC-SHA256, 64 hex digits.
 * @param key from the master key (stateful) or from random bytes of this boot (stateless)
 */
export function tokenDigest(key: KeyObject | Uint8Array, token: Uint8Array): string {
  return createHmac('sha256', key).update(token).digest('hex');
}
