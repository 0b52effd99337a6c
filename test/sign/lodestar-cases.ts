// Every container that is signed, with random contents as a client sends them, and the type of @lodestar/types that
// has to have the same root.

import { ssz } from '@lodestar/types';
import type { ForkName } from '../../signer/api/forks.ts';
import { aggregate, type Contents, type Json, type Members, payload, requests } from './lodestar-contents.ts';

interface Oracle {
  readonly fromJson: (json: unknown) => unknown;
  readonly hashTreeRoot: (value: never) => Uint8Array;
}

export interface Case {
  readonly type: string;
  readonly fork: ForkName;
  readonly member: string;
  readonly oracle: Oracle;
  readonly message: (contents: Contents) => Members;
  readonly wrap?: (message: Members) => Json;
}

export const CASES: readonly Case[] = [
  {
    type: 'AGGREGATE_AND_PROOF',
    fork: 'deneb',
    member: 'aggregate_and_proof',
    oracle: ssz.phase0.AggregateAndProof,
    message: (contents) => aggregate(contents, 'phase0'),
  },
  {
    type: 'AGGREGATE_AND_PROOF',
    fork: 'fulu',
    member: 'aggregate_and_proof',
    oracle: ssz.electra.AggregateAndProof,
    message: (contents) => aggregate(contents, 'electra'),
  },
  {
    type: 'AGGREGATE_AND_PROOF_V2',
    fork: 'gloas',
    member: 'aggregate_and_proof',
    oracle: ssz.gloas.AggregateAndProof,
    message: (contents) => aggregate(contents, 'electra'),
    wrap: (data) => ({ version: 'GLOAS', data }),
  },
  {
    type: 'BLOCK_V2',
    fork: 'gloas',
    member: 'beacon_block',
    oracle: ssz.phase0.BeaconBlockHeader,
    message: ({ root, safe }) => ({
      slot: safe(),
      proposer_index: safe(),
      parent_root: root(),
      state_root: root(),
      body_root: root(),
    }),
    wrap: (block_header) => ({ version: 'GLOAS', block_header }),
  },
  {
    type: 'SYNC_COMMITTEE_SELECTION_PROOF',
    fork: 'gloas',
    member: 'sync_aggregator_selection_data',
    oracle: ssz.altair.SyncAggregatorSelectionData,
    message: ({ safe }) => ({ slot: safe(), subcommittee_index: safe() }),
  },
  {
    type: 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF',
    fork: 'gloas',
    member: 'contribution_and_proof',
    oracle: ssz.altair.ContributionAndProof,
    message: ({ root, bytes, safe }) => ({
      aggregator_index: safe(),
      contribution: {
        slot: safe(),
        beacon_block_root: root(),
        subcommittee_index: safe(),
        aggregation_bits: bytes(16),
        signature: bytes(96),
      },
      selection_proof: bytes(96),
    }),
  },
  {
    type: 'VOLUNTARY_EXIT',
    fork: 'gloas',
    member: 'voluntary_exit',
    oracle: ssz.phase0.VoluntaryExit,
    message: ({ safe }) => ({ epoch: safe(), validator_index: safe() }),
  },
  {
    type: 'VALIDATOR_REGISTRATION',
    fork: 'fulu',
    member: 'validator_registration',
    oracle: ssz.bellatrix.ValidatorRegistrationV1,
    message: ({ bytes, safe }) => ({
      fee_recipient: bytes(20),
      gas_limit: safe(),
      timestamp: safe(),
      pubkey: bytes(48),
    }),
  },
  {
    type: 'PAYLOAD_ATTESTATION_MESSAGE',
    fork: 'gloas',
    member: 'payload_attestation_message',
    oracle: ssz.gloas.PayloadAttestationData,
    message: ({ root, safe, flag }) => ({
      beacon_block_root: root(),
      slot: safe(),
      payload_present: flag(),
      blob_data_available: flag(),
    }),
  },
  {
    type: 'PROPOSER_PREFERENCES',
    fork: 'gloas',
    member: 'proposer_preferences',
    oracle: ssz.gloas.ProposerPreferences,
    message: ({ root, safe, bytes, uint }) => ({
      dependent_root: root(),
      proposal_slot: safe(),
      validator_index: safe(),
      fee_recipient: bytes(20),
      target_gas_limit: uint(8),
    }),
  },
  {
    type: 'BUILDER_REQUEST_AUTH',
    fork: 'gloas',
    member: 'builder_request_auth',
    oracle: ssz.gloas.BuilderRequestAuth,
    message: ({ byteList, safe }) => ({ data: `${byteList(4095)}00`, slot: safe() }),
  },
  {
    type: 'EXECUTION_PAYLOAD_BID',
    fork: 'gloas',
    member: 'execution_payload_bid',
    oracle: ssz.gloas.ExecutionPayloadBid,
    message: ({ root, bytes, uint, safe, list }) => ({
      parent_block_hash: root(),
      parent_block_root: root(),
      block_hash: root(),
      prev_randao: root(),
      fee_recipient: bytes(20),
      gas_limit: uint(8),
      builder_index: safe(),
      slot: safe(),
      value: safe(),
      execution_payment: uint(8),
      blob_kzg_commitments: list(() => bytes(48), 30),
      execution_requests_root: root(),
    }),
  },
  {
    type: 'EXECUTION_PAYLOAD_ENVELOPE',
    fork: 'gloas',
    member: 'execution_payload_envelope',
    oracle: ssz.gloas.ExecutionPayloadEnvelope,
    message: (contents) => ({
      payload: payload(contents),
      execution_requests: requests(contents),
      builder_index: contents.safe(),
      beacon_block_root: contents.root(),
      parent_beacon_block_root: contents.root(),
    }),
    wrap: (data) => ({ version: 'gloas', data }),
  },
];
