// Votes are most of what a validator signs, so they are read without their schema, which costs 16 µs of a request's
// 456 (docs/decisions/0005), and hashed in place: the SSZ library takes three times as long. Tests hold both to say the
// same of every body.

import { hashInto } from '@chainsafe/persistent-merkle-tree';
import type { z } from 'zod';
import { decodeHex } from '../../common/formats/hex.ts';
import { readSlotOrEpoch, readUint64 } from '../api/primitives.ts';
import { attestationData } from './messages/messages.ts';
import { row } from './row.ts';

type Vote = z.output<typeof attestationData>;

export const ATTESTATION = row({
  members: ['attestation'],
  message: attestationData,
  domain: 0x01000000,
  fork: 'any',
  isForBatches: true,
  place: ({ slot, source, target }) => ({ slot, sourceEpoch: source.epoch, targetEpoch: target.epoch }),
  root: voteRoot,
  slashable: ({ source, target }, { publicKey, tenure }, signingRoot) => ({
    kind: 'attestation',
    publicKey,
    tenure,
    sourceEpoch: source.epoch,
    targetEpoch: target.epoch,
    signingRoot,
  }),
});

// How it is read. What is spelled in another way, or is wrong, is left to the schema.

interface AttestationRequest {
  readonly operation: 'ATTESTATION';
  readonly forkInfo: {
    readonly previousVersion: Uint8Array;
    readonly currentVersion: Uint8Array;
    readonly epoch: bigint;
    readonly genesisValidatorsRoot: Uint8Array;
  };
  readonly givenSigningRoot: Uint8Array | undefined;
  readonly givenGenesisForkVersion: undefined;
  readonly message: Vote;
}

export function readPlainAttestation(value: object): AttestationRequest | undefined {
  const { type, signingRoot, signing_root, genesis_fork_version, fork_info, attestation } = value as Members;
  if (type !== 'ATTESTATION' || signing_root !== undefined || genesis_fork_version !== undefined) return undefined;
  const forkInfo = readForkInfo(fork_info);
  const message = readVote(attestation);
  const givenSigningRoot = signingRoot === undefined ? undefined : readHex(signingRoot, 32);
  const isRead =
    forkInfo !== undefined && message !== undefined && (signingRoot === undefined) === (givenSigningRoot === undefined);
  if (!isRead) return undefined;
  return { operation: 'ATTESTATION', forkInfo, givenSigningRoot, givenGenesisForkVersion: undefined, message };
}

type Members = Readonly<Record<string, unknown>>;

function readForkInfo(value: unknown): AttestationRequest['forkInfo'] | undefined {
  const { fork, genesis_validators_root } = membersOf(value);
  const { previous_version, current_version, previousVersion, currentVersion, epoch } = membersOf(fork);
  if (previousVersion !== undefined || currentVersion !== undefined) return undefined;
  const info = {
    previousVersion: readHex(previous_version, 4),
    currentVersion: readHex(current_version, 4),
    epoch: readUint64(epoch),
    genesisValidatorsRoot: readHex(genesis_validators_root, 32),
  };
  return isComplete(info) ? info : undefined;
}

function readVote(value: unknown): Vote | undefined {
  const { slot, index, beacon_block_root, source, target } = membersOf(value);
  const vote = {
    slot: readSlotOrEpoch(slot),
    index: readUint64(index),
    beacon_block_root: readHex(beacon_block_root, 32),
    source: readCheckpoint(source),
    target: readCheckpoint(target),
  };
  return isComplete(vote) ? vote : undefined;
}

function readCheckpoint(value: unknown): Vote['source'] | undefined {
  const { epoch, root: block } = membersOf(value);
  const checkpoint = { epoch: readSlotOrEpoch(epoch), root: readHex(block, 32) };
  return isComplete(checkpoint) ? checkpoint : undefined;
}

function readHex(value: unknown, length: number): Uint8Array | undefined {
  return typeof value === 'string' ? decodeHex(value, length) : undefined;
}

const NO_MEMBERS: Members = Object.freeze({});

function membersOf(value: unknown): Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : NO_MEMBERS;
}

type Complete<T> = { readonly [Name in keyof T]: Exclude<T[Name], undefined> };

function isComplete<T extends object>(read: T): read is T & Complete<T> {
  for (const name in read) if (read[name] === undefined) return false;
  return true;
}

// How it is hashed.

const CHUNK = 32;
/** slot, index, beacon_block_root, source, target, and three of zeros: a tree has a power of two. */
const LEAVES = 8;
const [SLOT, INDEX, BLOCK_ROOT, SOURCE] = [0, CHUNK, 2 * CHUNK, 3 * CHUNK];
const [EPOCH, ROOT] = [0, CHUNK];

/** Overwritten by each call, which is over before the next: nothing here is secret. */
const checkpoints = new Uint8Array(4 * CHUNK);
const leaves = new Uint8Array(LEAVES * CHUNK);
const quarters = new Uint8Array(4 * CHUNK);
const halves = new Uint8Array(2 * CHUNK);
const root = new Uint8Array(CHUNK);

const checkpointNumbers = new DataView(checkpoints.buffer);
const leafNumbers = new DataView(leaves.buffer);
const checkpointRoots = leaves.subarray(SOURCE, SOURCE + 2 * CHUNK);

export function voteRoot(vote: Vote): Uint8Array {
  writeCheckpoint(vote.source, 0);
  writeCheckpoint(vote.target, 2 * CHUNK);
  hashInto(checkpoints, checkpointRoots);

  writeUint64(leafNumbers, SLOT, vote.slot);
  leafNumbers.setBigUint64(INDEX, vote.index, true);
  leaves.set(vote.beacon_block_root, BLOCK_ROOT);
  hashInto(leaves, quarters);
  hashInto(quarters, halves);
  hashInto(halves, root);
  return root;
}

function writeCheckpoint(checkpoint: Vote['source'], at: number): void {
  writeUint64(checkpointNumbers, at + EPOCH, checkpoint.epoch);
  checkpoints.set(checkpoint.root, at + ROOT);
}

function writeUint64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 2 ** 32), true);
}
