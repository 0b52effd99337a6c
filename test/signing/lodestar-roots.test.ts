// The object roots of all containers against @lodestar/types, of random contents, 10,000 of each type and fork: from
// the JSON that a client sends, through the parser and our containers, and through theirs. A failure names the seed
// that made the contents.

import { ssz } from '@lodestar/types';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ForkName } from '../../enclave/api/forks.ts';
import { parseSignRequest } from '../../enclave/api/sign-request.ts';
import { attestationSigningRoot } from '../../enclave/signing/roots/attestation-root.ts';
import { objectRoot } from '../../enclave/signing/roots/object-root.ts';
import { encodeHex } from '../../formats/hex.ts';

const RUNS = { numRuns: 10_000 };
const MINUTES_MS = 60_000;

type Json = string | boolean | Json[] | { [name: string]: Json };
type Members = { [name: string]: Json };

/**
 * Random contents from a seed: shrinking would cost more than it tells, where any content that differs shows the fault.
 */
class Contents {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Mulberry32. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  readonly bytes = (length: number): string => {
    const made = Buffer.alloc(length);
    for (let at = 0; at < length; at++) made[at] = this.below(256);
    return `0x${made.toString('hex')}`;
  };
  /** Of none to several chunks, and often at the edge of one. */
  readonly byteList = (limit = 700): string =>
    this.bytes(Math.min(limit, this.#length([0, 1, 31, 32, 33, 64, 65, 160], limit)));
  readonly root = (): string => this.bytes(32);
  readonly list = (item: () => Json, limit: number): Json[] =>
    Array.from({ length: Math.min(limit, this.#length([0, 1, 2, 4, 5, 6], limit + 1)) }, item);
  readonly flag = (): boolean => this.below(2) === 1;
  /** What Lodestar holds in a number too. */
  readonly safe = (): string => {
    const number = this.below(2 ** 32) * 2 ** 21 + this.below(2 ** 21);
    return String([0, 1, number, Number.MAX_SAFE_INTEGER][this.below(4)]);
  };
  readonly uint = (bytes: number): string => String(BigInt(this.bytes([1, bytes][this.below(2)] ?? bytes)));
  /** With its length bit. */
  readonly bits = (limit: number): string => {
    const length = this.#length([0, 1, 7, 8, 9, 255, 256, 257, 1280, 1281, 2048], Math.min(limit, 3000));
    const made = Buffer.from(this.bytes((length >> 3) + 1).slice(2), 'hex');
    const last = made.length - 1;
    made[last] = ((made[last] ?? 0) & ((1 << (length & 7)) - 1)) | (1 << (length & 7));
    return `0x${made.toString('hex')}`;
  };

  #length(edges: readonly number[], limit: number): number {
    return this.flag() ? (edges[this.below(edges.length)] ?? 0) : this.below(limit);
  }
}

const attestationData = ({ root, safe }: Contents): Members => ({
  slot: safe(),
  index: safe(),
  beacon_block_root: root(),
  source: { epoch: safe(), root: root() },
  target: { epoch: safe(), root: root() },
});

const aggregate = (contents: Contents, since: 'phase0' | 'electra'): Members => {
  const { safe, bytes, bits } = contents;
  const electra = since === 'electra' ? { committee_bits: bytes(8) } : {};
  return {
    aggregator_index: safe(),
    aggregate: {
      aggregation_bits: bits(since === 'electra' ? 131_072 : 2048),
      data: attestationData(contents),
      signature: bytes(96),
      ...electra,
    },
    selection_proof: bytes(96),
  };
};

const payload = ({ root, bytes, byteList, uint, safe, list }: Contents): Members => ({
  parent_hash: root(),
  fee_recipient: bytes(20),
  state_root: root(),
  receipts_root: root(),
  logs_bloom: bytes(256),
  prev_randao: root(),
  block_number: safe(),
  gas_limit: safe(),
  gas_used: safe(),
  timestamp: safe(),
  extra_data: byteList(32),
  base_fee_per_gas: uint(32),
  block_hash: root(),
  transactions: list(() => byteList(), 25),
  withdrawals: list(() => ({ index: safe(), validator_index: safe(), address: bytes(20), amount: uint(8) }), 16),
  blob_gas_used: uint(8),
  excess_blob_gas: uint(8),
  block_access_list: byteList(),
  slot_number: safe(),
});

const requests = ({ root, bytes, safe, uint, list }: Contents): Members => ({
  deposits: list(
    () => ({ pubkey: bytes(48), withdrawal_credentials: root(), amount: safe(), signature: bytes(96), index: safe() }),
    8,
  ),
  withdrawals: list(() => ({ source_address: bytes(20), validator_pubkey: bytes(48), amount: uint(8) }), 16),
  consolidations: list(() => ({ source_address: bytes(20), source_pubkey: bytes(48), target_pubkey: bytes(48) }), 2),
  builder_deposits: list(
    () => ({ pubkey: bytes(48), withdrawal_credentials: root(), amount: safe(), signature: bytes(96) }),
    8,
  ),
  builder_exits: list(() => ({ source_address: bytes(20), pubkey: bytes(48) }), 8),
});

interface Oracle {
  readonly fromJson: (json: unknown) => unknown;
  readonly hashTreeRoot: (value: never) => Uint8Array;
}

interface Case {
  readonly type: string;
  readonly fork: ForkName;
  /** Around the message, as the body has it. */
  readonly member: string;
  readonly oracle: Oracle;
  readonly message: (contents: Contents) => Members;
  readonly wrap?: (message: Members) => Json;
}

const CASES: readonly Case[] = [
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
    message: ({ byteList, safe }) => ({ data: byteList(4096), slot: safe() }),
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

const FORK_INFO = {
  fork: { previous_version: '0x00000000', current_version: '0x00000000', epoch: '0' },
  genesis_validators_root: `0x${'00'.repeat(32)}`,
};

function ourRoot({ type, fork, member, wrap }: Case, message: Members): string {
  const body = { type, fork_info: FORK_INFO, [member]: wrap?.(message) ?? message };
  const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
  if (parsed.kind === 'refused') throw new Error(`${parsed.reason}: ${parsed.hint}`);
  if (parsed.request.operation === 'ATTESTATION') throw new Error('votes have a root of their own (attestation-root)');
  return encodeHex(objectRoot(parsed.request, fork));
}

function theirRoot({ oracle }: Case, message: Members): string {
  return encodeHex(oracle.hashTreeRoot(oracle.fromJson(message) as never));
}

describe('the root of', () => {
  it.each(CASES)(
    '$type in $fork is that of Lodestar',
    (one) => {
      fc.assert(
        fc.property(fc.integer(), (seed) => {
          const message = one.message(new Contents(seed));
          expect(ourRoot(one, message)).toBe(theirRoot(one, message));
        }),
        RUNS,
      );
    },
    10 * MINUTES_MS,
  );

  it(
    'a vote, with its domain, is that of Lodestar',
    () => {
      fc.assert(
        fc.property(fc.integer(), (seed) => {
          const contents = new Contents(seed);
          const message = attestationData(contents);
          const body = { type: 'ATTESTATION', fork_info: FORK_INFO, attestation: message };
          const parsed = parseSignRequest(Buffer.from(JSON.stringify(body)));
          if (parsed.kind !== 'request' || parsed.request.operation !== 'ATTESTATION') throw new Error(parsed.kind);
          const domain = Buffer.from(contents.root().slice(2), 'hex');
          const vote = ssz.phase0.AttestationData.hashTreeRoot(ssz.phase0.AttestationData.fromJson(message));
          const expected = ssz.phase0.SigningData.hashTreeRoot({ objectRoot: vote, domain });
          expect(encodeHex(attestationSigningRoot(parsed.request.message, domain))).toBe(encodeHex(expected));
        }),
        RUNS,
      );
    },
    10 * MINUTES_MS,
  );
});
