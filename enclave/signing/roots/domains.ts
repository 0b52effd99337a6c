// Signing domains (consensus-specs, compute_domain and get_domain; specification/signing.md#bodies): which message it
// is, on which chain, under which fork. Two messages of different domains never have the same signing root.

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
  /** Bids and envelopes. */
  BEACON_BUILDER: 0x0b000000,
  PTC_ATTESTER: 0x0c000000,
  PROPOSER_PREFERENCES: 0x0d000000,
  /** The builder specification's. */
  APPLICATION_BUILDER: 0x00000001,
  /** The builder specification's. */
  BUILDER_REQUEST_AUTH: 0x0b000001,
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

export type ComputeDomain = typeof computeDomain;

/**
 * computeDomain that remembers the last domain of each type: one network and one fork make nearly all requests. What is
 * given back is shared: it goes into a hash and is not written to.
 */
export function rememberedDomains(): ComputeDomain {
  const last = new Map<
    DomainType,
    { forkVersion: Uint8Array; genesisValidatorsRoot: Uint8Array; domain: Uint8Array }
  >();
  return (type, forkVersion, genesisValidatorsRoot) => {
    const known = last.get(type);
    if (
      known !== undefined &&
      Buffer.compare(known.forkVersion, forkVersion) === 0 &&
      Buffer.compare(known.genesisValidatorsRoot, genesisValidatorsRoot) === 0
    ) {
      return known.domain;
    }
    const domain = computeDomain(type, forkVersion, genesisValidatorsRoot);
    // Copies: the version came out of a request's body, and a view into it would keep all of that.
    last.set(type, {
      forkVersion: Uint8Array.from(forkVersion),
      genesisValidatorsRoot: Uint8Array.from(genesisValidatorsRoot),
      domain,
    });
    return domain;
  };
}
