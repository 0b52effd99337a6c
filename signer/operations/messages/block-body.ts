// Bodies of full PHASE0 and ALTAIR blocks (specification/signing.md#blocks). They are only hashed.

import { z } from 'zod';
import { bitlist, bytes, list, publicKey, root, signature, uint64, vector } from '../../api/primitives.ts';

export const MAX_VALIDATORS_PER_COMMITTEE = 2048;
export const MAX_PROPOSER_SLASHINGS = 16;
export const MAX_ATTESTER_SLASHINGS = 2;
export const MAX_ATTESTATIONS = 128;
export const MAX_DEPOSITS = 16;
export const MAX_VOLUNTARY_EXITS = 16;
/** DEPOSIT_CONTRACT_TREE_DEPTH + 1. */
export const DEPOSIT_PROOF_LENGTH = 33;
/** SYNC_COMMITTEE_SIZE / 8 of the minimal and of the mainnet preset. */
export const SYNC_COMMITTEE_BYTES = { minimal: 4, mainnet: 64 } as const;

const checkpoint = z.object({ epoch: uint64, root });

const attestationData = z.object({
  slot: uint64,
  index: uint64,
  beacon_block_root: root,
  source: checkpoint,
  target: checkpoint,
});

const signedHeader = z.object({
  message: z.object({ slot: uint64, proposer_index: uint64, parent_root: root, state_root: root, body_root: root }),
  signature,
});

const indexedAttestation = z.object({
  attesting_indices: list(uint64, MAX_VALIDATORS_PER_COMMITTEE),
  data: attestationData,
  signature,
});

const deposit = z.object({
  proof: vector(root, DEPOSIT_PROOF_LENGTH),
  data: z.object({ pubkey: publicKey, withdrawal_credentials: root, amount: uint64, signature }),
});

export const phase0Body = z.object({
  randao_reveal: signature,
  eth1_data: z.object({ deposit_root: root, deposit_count: uint64, block_hash: root }),
  graffiti: root,
  proposer_slashings: list(
    z.object({ signed_header_1: signedHeader, signed_header_2: signedHeader }),
    MAX_PROPOSER_SLASHINGS,
  ),
  attester_slashings: list(
    z.object({ attestation_1: indexedAttestation, attestation_2: indexedAttestation }),
    MAX_ATTESTER_SLASHINGS,
  ),
  attestations: list(
    z.object({ aggregation_bits: bitlist(MAX_VALIDATORS_PER_COMMITTEE), data: attestationData, signature }),
    MAX_ATTESTATIONS,
  ),
  deposits: list(deposit, MAX_DEPOSITS),
  voluntary_exits: list(
    z.object({ message: z.object({ epoch: uint64, validator_index: uint64 }), signature }),
    MAX_VOLUNTARY_EXITS,
  ),
});

export const altairBody = phase0Body.extend({
  sync_aggregate: z.object({
    sync_committee_bits: bytes(SYNC_COMMITTEE_BYTES.minimal, SYNC_COMMITTEE_BYTES.mainnet),
    sync_committee_signature: signature,
  }),
});
