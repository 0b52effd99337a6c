// Tokens: their header, formats and keyed digest. What is present in the header but not understood is malformed, never
// absent, so it cannot fall through to anonymous access (specification/authorization.md#credentials). Looking a token
// up in a Map tells nothing about one that is nearly right: digests cannot be chosen without the key.

import assert from 'node:assert/strict';
import { hash, randomBytes } from 'node:crypto';

export const MAX_AUTHORIZATION_CHARACTERS = 8192;

export type Credential =
  | { readonly kind: 'none' }
  /** A static token may be any string. Wiped by the authenticator that takes it. */
  | { readonly kind: 'token'; readonly token: Buffer }
  | { readonly kind: 'malformed' };

/** @param values every Authorization header of the request as node:http gives it (latin1) */
export function parseAuthorization(values: readonly string[] | undefined): Credential {
  if (values === undefined || values.length === 0) return { kind: 'none' };
  const [header] = values;
  if (header === undefined || values.length > 1 || header.length > MAX_AUTHORIZATION_CHARACTERS) return MALFORMED;
  const [, scheme, credentials] = /^([A-Za-z]+) +(\S.*)$/.exec(header) ?? [];
  if (scheme === undefined || credentials === undefined) return MALFORMED;
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return { kind: 'token', token: Buffer.from(credentials, 'latin1') };
    case 'basic':
      return parseBasic(credentials);
    default:
      return MALFORMED;
  }
}

const MALFORMED: Credential = Object.freeze({ kind: 'malformed' });
const COLON = 0x3a;

/** RFC 7617 §2: the first colon ends the user name, the password may hold more. */
function parseBasic(base64: string): Credential {
  const decoded = Buffer.from(base64, 'base64');
  const colon = decoded.indexOf(COLON);
  const isStrict = decoded.toString('base64') === base64;
  if (!isStrict || colon === -1 || colon === decoded.length - 1) return MALFORMED;
  return { kind: 'token', token: decoded.subarray(colon + 1) };
}

type TokenKind = 'client' | 'management';

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
