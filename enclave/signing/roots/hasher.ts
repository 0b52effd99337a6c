// SHA-256 for the SSZ library, which by default hashes in plain JavaScript: hashtree (native, five times as fast on an
// attestation) where its binary loads and is right, the WebAssembly hasher elsewhere. Hashtree picks its code by the
// CPU it finds, so it is believed only after it agreed with node:crypto on this machine, at every width it works in.

import { createHash } from 'node:crypto';
import { setHasher } from '@chainsafe/persistent-merkle-tree';
import { hasher as webAssembly } from '@chainsafe/persistent-merkle-tree/hasher/as-sha256';

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
/** Its widest code takes 16 blocks at once; 31 blocks are one of each width: 16 + 8 + 4 + 2 + 1. */
const PROBE_BLOCKS = 31;

type Hasher = typeof webAssembly;

/** Set the library's hasher, which is one for the process. Before the first root is computed. */
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
