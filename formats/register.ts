// A register of a security module (PCR): what it holds once it was extended. A register is never equal to the digest
// that it was extended with, and everybody who prints or compares one works it out here
// (specification/evidence.md#registers).

import { createHash } from 'node:crypto';

export const PCR_BYTES = 48;

/** The value of a register that was zero and was extended once. @param digest what it was extended with */
export function extendedOnce(digest: Uint8Array): Buffer {
  return createHash('sha384').update(Buffer.alloc(PCR_BYTES)).update(digest).digest();
}
