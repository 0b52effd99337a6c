// A vote read without its schema, which costs 16 µs more of a request's 456 (docs/decisions/0005). The schema
// (sign-request.ts) is the law: whatever is spelled in another way, or is wrong, is left to it. Only values of
// JSON.parse come here.

import type { z } from 'zod';
import { decodeHex } from '../../../common/formats/hex.ts';
import { readSlotOrEpoch, readUint64 } from '../primitives.ts';
import type { attestationData } from './messages.ts';

/** As the schema gives it, which the compiler compares where this one is used. */
export interface AttestationRequest {
  readonly operation: 'ATTESTATION';
  readonly forkInfo: {
    readonly previousVersion: Uint8Array;
    readonly currentVersion: Uint8Array;
    readonly epoch: bigint;
    readonly genesisValidatorsRoot: Uint8Array;
  };
  readonly givenSigningRoot: Uint8Array | undefined;
  readonly givenGenesisForkVersion: undefined;
  readonly message: z.output<typeof attestationData>;
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

function readVote(value: unknown): AttestationRequest['message'] | undefined {
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

function readCheckpoint(value: unknown): AttestationRequest['message']['source'] | undefined {
  const { epoch, root } = membersOf(value);
  const checkpoint = { epoch: readSlotOrEpoch(epoch), root: readHex(root, 32) };
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
