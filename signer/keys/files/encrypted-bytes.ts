// How files of keys are encrypted: AES-256-GCM (NIST SP 800-38D) under a key that scrypt (RFC 7914) derives. It trusts
// nothing of what is opened: bytes that do not authenticate are no bytes.

import { createCipheriv, createDecipheriv, scrypt } from 'node:crypto';
import { promisify } from 'node:util';
import { z } from 'zod';

/** EIP-2335's own parameters: 256 MiB, most of a second. */
const SCRYPT = { N: 2 ** 18, r: 8, p: 1, maxmem: 257 * 2 ** 20 } as const;
const KEY_BYTES = 32;
export const SALT_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;

const derive = promisify(scrypt) as (
  secret: Buffer,
  salt: Buffer,
  length: number,
  options: typeof SCRYPT,
) => Promise<Buffer>;

export function deriveFileKey(secret: Buffer, salt: Buffer): Promise<Buffer> {
  return derive(secret, salt, KEY_BYTES, SCRYPT);
}

interface EncryptionTerms {
  readonly key: Buffer;
  readonly nonce: Uint8Array;
  readonly associatedData: Buffer;
}

export function encryptBytes(plain: Buffer, { key, nonce, associatedData }: EncryptionTerms): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES }).setAAD(associatedData);
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Answers the plain bytes, which the caller wipes; undefined for what does not authenticate. */
export function decryptBytes(encrypted: Buffer, { key, nonce, associatedData }: EncryptionTerms): Buffer | undefined {
  if (encrypted.length < TAG_BYTES) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(associatedData)
    .setAuthTag(encrypted.subarray(-TAG_BYTES));
  const plain = decipher.update(encrypted.subarray(0, -TAG_BYTES));
  try {
    decipher.final();
    return plain;
  } catch {
    plain.fill(0);
    return undefined;
  }
}

export function hexOf(bytes: number): z.ZodString {
  return z.string().regex(new RegExp(`^[0-9a-f]{${bytes * 2}}$`));
}
