// EXECUTION_PAYLOAD_ENVELOPE (specification/signing.md#gloas). It is only hashed; the body's size limits its lists.

import type { z } from 'zod';
import type { StatedFork } from '../../api/forks.ts';
import {
  address,
  byteList,
  bytes256,
  container,
  progressiveByteList,
  progressiveContainer,
  progressiveList,
  publicKey,
  root,
  signature,
  slotOrEpoch,
  uint64,
  uint256,
} from '../described.ts';
import { bareOrVersioned } from './messages.ts';

const MAX_ITEMS = 2 ** 22;

const withdrawal = container({ index: uint64, validator_index: uint64, address, amount: uint64 });

const executionPayload = progressiveContainer({
  parent_hash: root,
  fee_recipient: address,
  state_root: root,
  receipts_root: root,
  logs_bloom: bytes256,
  prev_randao: root,
  block_number: uint64,
  gas_limit: uint64,
  gas_used: uint64,
  timestamp: uint64,
  extra_data: byteList(32),
  base_fee_per_gas: uint256,
  block_hash: root,
  transactions: progressiveList(progressiveByteList, MAX_ITEMS),
  withdrawals: progressiveList(withdrawal, MAX_ITEMS),
  blob_gas_used: uint64,
  excess_blob_gas: uint64,
  block_access_list: progressiveByteList,
  slot_number: slotOrEpoch,
});

const deposit = { pubkey: publicKey, withdrawal_credentials: root, amount: uint64, signature };

const executionRequests = progressiveContainer({
  deposits: progressiveList(container({ ...deposit, index: uint64 }), MAX_ITEMS),
  withdrawals: progressiveList(
    container({ source_address: address, validator_pubkey: publicKey, amount: uint64 }),
    MAX_ITEMS,
  ),
  consolidations: progressiveList(
    container({ source_address: address, source_pubkey: publicKey, target_pubkey: publicKey }),
    MAX_ITEMS,
  ),
  builder_deposits: progressiveList(container(deposit), MAX_ITEMS),
  builder_exits: progressiveList(container({ source_address: address, pubkey: publicKey }), MAX_ITEMS),
});

const envelope = progressiveContainer({
  payload: executionPayload,
  execution_requests: executionRequests,
  builder_index: uint64,
  beacon_block_root: root,
  parent_beacon_block_root: root,
});

export const wholeEnvelopeRoot = envelope.rootOf;

const wholeEnvelope = bareOrVersioned(envelope.members, 'payload');

export type ExecutionPayloadEnvelope = Omit<z.output<typeof wholeEnvelope>, 'version'>;

export interface EnvelopeMessage {
  readonly version: StatedFork | undefined;
  readonly slot: number;
  readonly feeRecipient: Uint8Array;
  readonly gasLimit: bigint;
  readonly builderIndex: bigint;
  readonly beaconBlockRoot: Uint8Array;
  readonly content:
    | { readonly kind: 'whole'; readonly envelope: ExecutionPayloadEnvelope }
    /** hash_tree_root of a large one: a worker thread read and hashed it (sign/envelopes). */
    | { readonly kind: 'root'; readonly root: Uint8Array };
}

export const executionPayloadEnvelope = wholeEnvelope.transform(
  ({ version, ...whole }): EnvelopeMessage => ({
    version,
    slot: whole.payload.slot_number,
    feeRecipient: whole.payload.fee_recipient,
    gasLimit: whole.payload.gas_limit,
    builderIndex: whole.builder_index,
    beaconBlockRoot: whole.beacon_block_root,
    content: { kind: 'whole', envelope: whole },
  }),
);
