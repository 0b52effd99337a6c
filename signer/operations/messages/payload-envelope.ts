// EXECUTION_PAYLOAD_ENVELOPE (specification/signing.md#gloas). It is only hashed; the body's size limits its lists.

import { z } from 'zod';
import type { StatedFork } from '../../api/forks.ts';
import {
  address,
  byteList,
  bytes,
  list,
  publicKey,
  root,
  signature,
  slotOrEpoch,
  uint64,
  uint256,
} from '../../api/primitives.ts';
import { bareOrVersioned } from './messages.ts';

const MAX_EXTRA_DATA_BYTES = 32;
const LOGS_BLOOM_BYTES = 256;
const MAX_ITEMS = 2 ** 22;

const executionPayload = z.object({
  parent_hash: root,
  fee_recipient: address,
  state_root: root,
  receipts_root: root,
  logs_bloom: bytes(LOGS_BLOOM_BYTES),
  prev_randao: root,
  block_number: uint64,
  gas_limit: uint64,
  gas_used: uint64,
  timestamp: uint64,
  extra_data: byteList(MAX_EXTRA_DATA_BYTES),
  base_fee_per_gas: uint256,
  block_hash: root,
  transactions: list(byteList(), MAX_ITEMS),
  withdrawals: list(z.object({ index: uint64, validator_index: uint64, address, amount: uint64 }), MAX_ITEMS),
  blob_gas_used: uint64,
  excess_blob_gas: uint64,
  block_access_list: byteList(),
  slot_number: slotOrEpoch,
});

const executionRequests = z.object({
  deposits: list(
    z.object({ pubkey: publicKey, withdrawal_credentials: root, amount: uint64, signature, index: uint64 }),
    MAX_ITEMS,
  ),
  withdrawals: list(z.object({ source_address: address, validator_pubkey: publicKey, amount: uint64 }), MAX_ITEMS),
  consolidations: list(
    z.object({ source_address: address, source_pubkey: publicKey, target_pubkey: publicKey }),
    MAX_ITEMS,
  ),
  builder_deposits: list(
    z.object({ pubkey: publicKey, withdrawal_credentials: root, amount: uint64, signature }),
    MAX_ITEMS,
  ),
  builder_exits: list(z.object({ source_address: address, pubkey: publicKey }), MAX_ITEMS),
});

const wholeEnvelope = bareOrVersioned(
  {
    payload: executionPayload,
    execution_requests: executionRequests,
    builder_index: uint64,
    beacon_block_root: root,
    parent_beacon_block_root: root,
  },
  'payload',
);

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
    /** hash_tree_root of a large one: it was read and hashed beside the main thread (signing/envelopes). */
    | { readonly kind: 'root'; readonly root: Uint8Array };
}

export const executionPayloadEnvelope = wholeEnvelope.transform(
  ({ version, ...envelope }): EnvelopeMessage => ({
    version,
    slot: envelope.payload.slot_number,
    feeRecipient: envelope.payload.fee_recipient,
    gasLimit: envelope.payload.gas_limit,
    builderIndex: envelope.builder_index,
    beaconBlockRoot: envelope.beacon_block_root,
    content: { kind: 'whole', envelope },
  }),
);
