// The messages that Gloas adds, but the large one (specification/signing.md#gloas).

import { MAX_BUILDER_AUTH_BYTES, refuseValue } from '../../api/primitives.ts';
import {
  address,
  boolean,
  byteList,
  bytes48,
  container,
  progressiveContainer,
  progressiveList,
  root,
  slotOrEpoch,
  uint64,
} from '../described.ts';
import { bareOrVersioned } from './messages.ts';

/** A progressive list has no limit of its own (EIP-7916): this is more than a body has room for. */
const MAX_BLOB_COMMITMENTS = 2 ** 20;

export const PayloadAttestationData = container({
  beacon_block_root: root,
  slot: slotOrEpoch,
  payload_present: boolean,
  blob_data_available: boolean,
});

export const payloadAttestationData = bareOrVersioned(PayloadAttestationData.members, 'beacon_block_root');

export const ProposerPreferences = container({
  dependent_root: root,
  proposal_slot: slotOrEpoch,
  validator_index: uint64,
  fee_recipient: address,
  target_gas_limit: uint64,
});

export const proposerPreferences = bareOrVersioned(
  {
    ...ProposerPreferences.members,
    target_gas_limit: uint64.schema.nullish(),
    /** What an early draft of Prysm calls target_gas_limit. */
    gas_limit: uint64.schema.nullish(),
  },
  'proposal_slot',
).transform(({ gas_limit, ...preferences }, context) => {
  const target_gas_limit = preferences.target_gas_limit ?? gas_limit;
  if (target_gas_limit === undefined || target_gas_limit === null)
    return refuseValue(context, undefined, 'target_gas_limit is missing');
  return gas_limit === undefined || gas_limit === null || gas_limit === target_gas_limit
    ? { ...preferences, target_gas_limit }
    : refuseValue(context, undefined, 'target_gas_limit and gas_limit differ');
});

/** `data` is what the builder knows itself by, its host name by default: without it every builder would be meant. */
export const BuilderRequestAuth = container({ data: byteList(MAX_BUILDER_AUTH_BYTES, 1), slot: slotOrEpoch });

export const builderRequestAuth = bareOrVersioned(BuilderRequestAuth.members, 'slot');

export const ExecutionPayloadBid = progressiveContainer({
  parent_block_hash: root,
  parent_block_root: root,
  block_hash: root,
  prev_randao: root,
  fee_recipient: address,
  gas_limit: uint64,
  builder_index: uint64,
  slot: slotOrEpoch,
  value: uint64,
  execution_payment: uint64,
  blob_kzg_commitments: progressiveList(bytes48, MAX_BLOB_COMMITMENTS),
  execution_requests_root: root,
});

export const executionPayloadBid = bareOrVersioned(ExecutionPayloadBid.members, 'block_hash');
