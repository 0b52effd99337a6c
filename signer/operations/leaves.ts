// The leaves of all SSZ containers, and the hasher of their roots, which is set before there is a container.

import { createHash } from 'node:crypto';
import { setHasher } from '@chainsafe/persistent-merkle-tree';
import { hasher as webAssembly } from '@chainsafe/persistent-merkle-tree/hasher/as-sha256';
import { ByteVectorType, UintBigintType, UintNumberType } from '@chainsafe/ssz';

// hashtree (native, five times as fast on an attestation) where its binary loads and is right, the WebAssembly hasher
// elsewhere. It is believed only after it agreed with node:crypto on this machine, at every width.

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** Its widest code takes 16 blocks at once; 31 blocks are one of each width: 16 + 8 + 4 + 2 + 1. */
const PROBE_BLOCKS = 31;

type Hasher = typeof webAssembly;

export async function useFastestHasher(): Promise<'hashtree' | 'as-sha256'> {
  const native = await loadNative();
  if (native !== undefined && agreesWithNode(native)) {
    setHasher(native);
    return 'hashtree';
  }
  setHasher(webAssembly);
  return 'as-sha256';
}

async function loadNative(): Promise<Hasher | undefined> {
  try {
    return (await import('@chainsafe/persistent-merkle-tree/hasher/hashtree')).hasher;
  } catch {
    return undefined; // No binary for this platform: npm left the optional package out.
  }
}

export function agreesWithNode(hasher: Pick<Hasher, 'hashInto'>): boolean {
  const input = Uint8Array.from({ length: PROBE_BLOCKS * BLOCK_BYTES }, (_, index) => (index * 131) % 251);
  const output = new Uint8Array(PROBE_BLOCKS * DIGEST_BYTES);
  hasher.hashInto(input, output);
  for (let block = 0; block < PROBE_BLOCKS; block++) {
    const digest = createHash('sha256').update(input.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
    const own = output.subarray(block * DIGEST_BYTES, (block + 1) * DIGEST_BYTES);
    if (!digest.digest().equals(own)) return false;
  }
  return true;
}

await useFastestHasher();

export const Uint64 = new UintBigintType(8);
/** uint64 of which the parser takes no more than 2^53 - 1. */
export const SlotOrEpoch = new UintNumberType(8);
export const Bytes4 = new ByteVectorType(4);
export const Bytes20 = new ByteVectorType(20);
export const Bytes32 = new ByteVectorType(32);
export const Bytes48 = new ByteVectorType(48);
export const Bytes96 = new ByteVectorType(96);
