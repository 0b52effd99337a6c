// Keccak-256 as Ethereum uses it, which node:crypto does not have (its SHA-3 pads otherwise). For the checksum of an
// address only (EIP-55): nothing secret passes through. The one file that uses @noble/hashes.

import { keccak_256 } from '@noble/hashes/sha3.js';

/** 32 bytes. */
export function keccak256(message: Uint8Array): Buffer {
  return Buffer.from(keccak_256(message));
}
