// Bodies of full PHASE0 and ALTAIR blocks (specification/signing.md#blocks). They are only hashed.

import {
  bitlist,
  container,
  list,
  presetBytes,
  publicKey,
  root,
  signature,
  uint64,
  uint64List,
  vector,
} from '../described.ts';

export const MAX_VALIDATORS_PER_COMMITTEE = 2048;
const MAX_PROPOSER_SLASHINGS = 16;
const MAX_ATTESTER_SLASHINGS = 2;
const MAX_ATTESTATIONS = 128;
const MAX_DEPOSITS = 16;
const MAX_VOLUNTARY_EXITS = 16;
/** DEPOSIT_CONTRACT_TREE_DEPTH + 1. */
const DEPOSIT_PROOF_LENGTH = 33;
/** SYNC_COMMITTEE_SIZE / 8 of the minimal and of the mainnet preset. */
export const SYNC_COMMITTEE_BYTES = { minimal: 4, mainnet: 64 } as const;

const checkpoint = container({ epoch: uint64, root });

const attestationData = container({
  slot: uint64,
  index: uint64,
  beacon_block_root: root,
  source: checkpoint,
  target: checkpoint,
});

const signedHeader = container({
  message: container({ slot: uint64, proposer_index: uint64, parent_root: root, state_root: root, body_root: root }),
  signature,
});

const indexedAttestation = container({
  attesting_indices: uint64List(MAX_VALIDATORS_PER_COMMITTEE),
  data: attestationData,
  signature,
});

const deposit = container({
  proof: vector(root, DEPOSIT_PROOF_LENGTH),
  data: container({ pubkey: publicKey, withdrawal_credentials: root, amount: uint64, signature }),
});

const phase0Parts = {
  randao_reveal: signature,
  eth1_data: container({ deposit_root: root, deposit_count: uint64, block_hash: root }),
  graffiti: root,
  proposer_slashings: list(
    container({ signed_header_1: signedHeader, signed_header_2: signedHeader }),
    MAX_PROPOSER_SLASHINGS,
  ),
  attester_slashings: list(
    container({ attestation_1: indexedAttestation, attestation_2: indexedAttestation }),
    MAX_ATTESTER_SLASHINGS,
  ),
  attestations: list(
    container({ aggregation_bits: bitlist(MAX_VALIDATORS_PER_COMMITTEE), data: attestationData, signature }),
    MAX_ATTESTATIONS,
  ),
  deposits: list(deposit, MAX_DEPOSITS),
  voluntary_exits: list(
    container({ message: container({ epoch: uint64, validator_index: uint64 }), signature }),
    MAX_VOLUNTARY_EXITS,
  ),
};

/** A full body is hashed alone, for the header that is signed. */
export const Phase0Body = container(phase0Parts);

/** The presets differ in the length of one member: the parser takes both, and each has its container. */
const altairParts = (preset: keyof typeof SYNC_COMMITTEE_BYTES) => ({
  ...phase0Parts,
  sync_aggregate: container({
    sync_committee_bits: presetBytes(SYNC_COMMITTEE_BYTES, preset),
    sync_committee_signature: signature,
  }),
});

export const AltairBody = container(altairParts('mainnet'));

export const MinimalAltairBody = container(altairParts('minimal'));
