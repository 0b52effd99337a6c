// What tests of BLS cores share: keys and roots by name, the signature that is expected, and what became of one that
// was asked for.

import { createHash } from 'node:crypto';
import { SecretKey } from '@chainsafe/blst';
import { SignerError } from '../../signer/api/errors.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';

/** Bytes that look random and are the same in every run. */
export function bytesOf(label: string): Uint8Array {
  return createHash('sha256').update(label).digest();
}

export function secretKeyOf(label: string): Uint8Array {
  return SecretKey.fromKeygen(bytesOf(label)).toBytes();
}

export const ROOT = bytesOf('a root');

export function expectedSignature(secretKey: Uint8Array, root = ROOT): string {
  return hex(SecretKey.fromBytes(secretKey).sign(root).toBytes());
}

export function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** A signature as hex, or the reason of the refusal. Anything else fails the test. */
export async function outcome(signature: Promise<Uint8Array>): Promise<string> {
  try {
    return hex(await signature);
  } catch (error) {
    if (error instanceof SignerError) return error.reason;
    throw error;
  }
}

/** So many keys of a core, with the secrets that they have. */
export function keysOf(core: BlsCore, count: number) {
  return Array.from({ length: count }, (_, index) => {
    const secretKey = secretKeyOf(`key ${index}`);
    return { secretKey, ...core.addKey(secretKey) };
  });
}

/**
 * A core starts jobs in a microtask that their `sign` queued; this one comes after it, and before any signature can be
 * done.
 */
export const jobsHaveStarted = () => Promise.resolve();
