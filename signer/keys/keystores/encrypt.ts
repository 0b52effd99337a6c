// EIP-2335 keystores of shares (api/distributed.ts), on node:crypto. Their passwords are random and 256 bits long, so
// the key derivation has nothing to slow down: it is the cheaper one of the standard.

import { createCipheriv, createHash, pbkdf2Sync, randomBytes, randomUUID } from 'node:crypto';
import { type KeyShare, writtenShare } from '../../api/distributed.ts';

const ITERATIONS = 262_144;
const PASSWORD_BYTES = 32;

/** ASCII, which is its own normal form. */
export function newPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

/** @param secretKey of the share, 32 bytes, big endian; the caller wipes it @returns the text of the file */
export function encryptShare(secretKey: Uint8Array, password: string, share: KeyShare): string {
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
    description: `share ${share.participantId} of a distributed key: ${share.threshold} of ${share.participants} sign`,
    pubkey: share.publicKey.slice(2),
    path: '',
    uuid: randomUUID(),
    version: 4,
    distributed: writtenShare(share),
  };
  return `${JSON.stringify(keystore, undefined, 2)}\n`;
}
