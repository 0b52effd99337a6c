// Tokens: their formats, and the keyed digest under which they are known. Looking one up in a Map tells nothing about a
// token that is nearly right: digests cannot be chosen without the key.

import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';

export type TokenKind = 'client' | 'management';

const PREFIX = { client: 'sr_client_', management: 'sr_mgmt_' } as const;
const TOKEN_BYTES = 32;
const ACCESSOR_BYTES = 16;
const SHA256_BYTES = 32;
const SHA256_BLOCK_BYTES = 64;
/** RFC 2104 §2. */
const [INNER_PAD, OUTER_PAD] = [0x36, 0x5c];

/** 256 random bits; the caller wipes it. */
export function createToken(kind: TokenKind): Buffer {
  const secret = randomBytes(TOKEN_BYTES);
  const token = Buffer.from(PREFIX[kind] + secret.toString('base64url'), 'ascii');
  secret.fill(0);
  return token;
}

export function createAccessor(): string {
  return `acc_${randomBytes(ACCESSOR_BYTES).toString('hex')}`;
}

/** HMAC-SHA256 as two hashes: createHmac makes a stream, at four times the price. @param key at most 64 bytes */
export function tokenDigest(key: Uint8Array, token: Uint8Array): string {
  assert(key.length <= SHA256_BLOCK_BYTES);
  const inner = Buffer.allocUnsafe(SHA256_BLOCK_BYTES + token.length);
  const outer = Buffer.allocUnsafe(SHA256_BLOCK_BYTES + SHA256_BYTES);
  for (let at = 0; at < SHA256_BLOCK_BYTES; at++) {
    const byte = key[at] ?? 0;
    inner[at] = byte ^ INNER_PAD;
    outer[at] = byte ^ OUTER_PAD;
  }
  inner.set(token, SHA256_BLOCK_BYTES);
  // bytes cost memory of their own each time
  outer.write(hash('sha256', inner, 'latin1'), SHA256_BLOCK_BYTES, 'latin1');
  const digest = hash('sha256', outer, 'hex');
  inner.fill(0);
  outer.fill(0);
  return digest;
}
