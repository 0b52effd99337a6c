// New EIP-2335 keystores, on node:crypto, for random passwords of 256 bits alone: the key derivation has nothing to
// slow down, so it is the cheaper one of the standard.

import { createCipheriv, createHash, pbkdf2Sync, randomBytes, randomUUID } from 'node:crypto';
import { type KeyShare, writtenShare } from '../../api/distributed.ts';

const ITERATIONS = 262_144;
const PASSWORD_BYTES = 32;

/** ASCII, which is its own normal form. */
export function newPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

interface NewKeystore {
  /** 0x and hex. */
  readonly publicKey: string;
  readonly description: string;
  readonly share?: KeyShare;
}

/** @param secretKey 32 bytes, big endian; the caller wipes it @returns the text of the file */
export function encryptKeystore(secretKey: Uint8Array, password: string, of: NewKeystore): string {
  const [salt, iv] = [randomBytes(32), randomBytes(16)];
  const derived = pbkdf2Sync(password, salt, ITERATIONS, 32, 'sha256');
  const message = createCipheriv('aes-128-ctr', derived.subarray(0, 16), iv).update(secretKey);
  const checksum = createHash('sha256').update(derived.subarray(16)).update(message).digest();
  derived.fill(0);
  const keystore = {
    crypto: {
      kdf: {
        function: 'pbkdf2',
        params: { dklen: 32, c: ITERATIONS, prf: 'hmac-sha256', salt: salt.toString('hex') },
        message: '',
      },
      checksum: { function: 'sha256', params: {}, message: checksum.toString('hex') },
      cipher: { function: 'aes-128-ctr', params: { iv: iv.toString('hex') }, message: message.toString('hex') },
    },
    description: of.description,
    pubkey: of.publicKey.slice(2),
    path: '',
    uuid: randomUUID(),
    version: 4,
    ...(of.share === undefined ? {} : { distributed: writtenShare(of.share) }),
  };
  return `${JSON.stringify(keystore, undefined, 2)}\n`;
}
