// What a register of a security module (PCR) holds once it was extended (specification/evidence.md#registers).

import { createHash } from 'node:crypto';

export const PCR_BYTES = 48;

export function extendedOnce(digest: Uint8Array): Buffer {
  return createHash('sha384').update(Buffer.alloc(PCR_BYTES)).update(digest).digest();
}
