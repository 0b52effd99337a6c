// The leaves of all SSZ containers, and the hasher that their roots are computed with: it is set here, before there is
// a container. The library enters the program in this folder. A worker that computes roots
// (envelopes/envelope-worker.ts) sets its own hasher by this import.

import { ByteVectorType, UintBigintType, UintNumberType } from '@chainsafe/ssz';
import { useFastestHasher } from './hasher.ts';

await useFastestHasher();

export const uint64 = new UintBigintType(8);
/** uint64 of which the parser takes no more than 2^53 - 1. */
export const SlotOrEpoch = new UintNumberType(8);
export const Bytes4 = new ByteVectorType(4);
export const Bytes20 = new ByteVectorType(20);
export const Bytes32 = new ByteVectorType(32);
export const Bytes48 = new ByteVectorType(48);
export const Bytes96 = new ByteVectorType(96);
