// Signing domains (consensus-specs, compute_domain and get_domain; wire.md, Request bodies): which message it is, on
// which chain, under which fork. Two messages of different domains never have the same signing root. A domain costs one
// SHA-256 (about 1 µs): nothing is cached.

import type { ForkInfo } from '../api/sign-request.ts';
import { ForkData } from './containers.ts';

export const DOMAIN_TYPES = {
  BEACON_PROPOSER: 0x00000000,
  BEACON_ATTESTER: 0x01000000,
  RANDAO: 0x02000000,
  VOLUNTARY_EXIT: 0x04000000,
  SELECTION_PROOF: 0x05000000,
  AGGREGATE_AND_PROOF: 0x06000000,
  SYNC_COMMITTEE: 0x07000000,
  SYNC_COMMITTEE_SELECTION_PROOF: 0x08000000,
  CONTRIBUTION_AND_PROOF: 0x09000000,
  /** Of the builder specification. */
  APPLICATION_BUILDER: 0x00000001,
} as const;

export type DomainType = (typeof DOMAIN_TYPES)[keyof typeof DOMAIN_TYPES];

const FORK_DATA_ROOT_BYTES = 28;

/** 32 bytes: the domain type, and 28 bytes of the fork data root. */
export function computeDomain(
  type: DomainType,
  forkVersion: Uint8Array,
  genesisValidatorsRoot: Uint8Array,
): Uint8Array {
  const forkDataRoot = ForkData.hashTreeRoot({
    current_version: forkVersion,
    genesis_validators_root: genesisValidatorsRoot,
  });
  const domain = new Uint8Array(4 + FORK_DATA_ROOT_BYTES);
  new DataView(domain.buffer).setUint32(0, type);
  domain.set(forkDataRoot.subarray(0, FORK_DATA_ROOT_BYTES), 4);
  return domain;
}

/** The fork version in force at an epoch, by the fork the client sent. */
export function forkVersionAt(epoch: number, fork: ForkInfo): Uint8Array {
  return epoch < fork.epoch ? fork.previousVersion : fork.currentVersion;
}
