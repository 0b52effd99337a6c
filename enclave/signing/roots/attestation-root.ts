// Computes the signing root of a vote in place. Votes are most of what a validator signs, and the SSZ library takes
// three times as long. There are two containers of fixed size (consensus-specs, AttestationData, Checkpoint and
// SigningData; SSZ, "Merkleization"), and every field is one chunk of 32 bytes. The hasher is the library's
// (hasher.ts). test/signing compares this code with the library, and both with an oracle.

import { hashInto } from '@chainsafe/persistent-merkle-tree';
import type { SignRequest } from '../../api/sign-request.ts';

type Attestation = Extract<SignRequest, { operation: 'ATTESTATION' }>['message'];

const CHUNK = 32;
/** slot, index, beacon_block_root, source, target, and three of zeros: a tree has a power of two. */
const LEAVES = 8;
const [SLOT, INDEX, BLOCK_ROOT, SOURCE] = [0, CHUNK, 2 * CHUNK, 3 * CHUNK];
/** Bytes of a checkpoint. */
const [EPOCH, ROOT] = [0, CHUNK];

/** Overwritten by each call, which is over before the next: nothing here is secret. */
const checkpoints = new Uint8Array(4 * CHUNK);
const leaves = new Uint8Array(LEAVES * CHUNK);
const quarters = new Uint8Array(4 * CHUNK);
const halves = new Uint8Array(2 * CHUNK);
const signingData = new Uint8Array(2 * CHUNK);

const checkpointNumbers = new DataView(checkpoints.buffer);
const leafNumbers = new DataView(leaves.buffer);
const checkpointRoots = leaves.subarray(SOURCE, SOURCE + 2 * CHUNK);
const dataRoot = signingData.subarray(0, CHUNK);

/** hash_tree_root(SigningData(hash_tree_root(vote), domain)). @param domain 32 bytes @returns 32 bytes */
export function attestationSigningRoot(vote: Attestation, domain: Uint8Array): Uint8Array {
  writeCheckpoint(vote.source, 0);
  writeCheckpoint(vote.target, 2 * CHUNK);
  hashInto(checkpoints, checkpointRoots);

  writeUint64(leafNumbers, SLOT, vote.slot);
  leafNumbers.setBigUint64(INDEX, vote.index, true);
  leaves.set(vote.beacon_block_root, BLOCK_ROOT);
  hashInto(leaves, quarters);
  hashInto(quarters, halves);
  hashInto(halves, dataRoot);

  signingData.set(domain, CHUNK);
  const root = new Uint8Array(CHUNK);
  hashInto(signingData, root);
  return root;
}

function writeCheckpoint({ epoch, root }: Attestation['source'], at: number): void {
  writeUint64(checkpointNumbers, at + EPOCH, epoch);
  checkpoints.set(root, at + ROOT);
}

/** @param value a safe integer */
function writeUint64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
}
