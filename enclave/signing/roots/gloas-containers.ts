// The SSZ containers that Gloas adds, with the specification's names (specification/signing.md#gloas). A progressive
// container (EIP-7495) mixes in which of its fields are active: all of them here. A progressive list (EIP-7916) has no
// limit in its root. Like the others they trust the parser (api/messages/gloas-messages.ts and
// api/messages/payload-envelope.ts).

import {
  BooleanType,
  ByteListType,
  ByteVectorType,
  ContainerType,
  ProgressiveByteListType,
  ProgressiveContainerType,
  ProgressiveListCompositeType,
  UintBigintType,
} from '@chainsafe/ssz';
import { MAX_BUILDER_AUTH_BYTES } from '../../api/messages/gloas-messages.ts';
import { Bytes20, Bytes32, Bytes48, Bytes96, SlotOrEpoch, uint64 } from './leaves.ts';

const boolean = new BooleanType();
const uint256 = new UintBigintType(32);

export const PayloadAttestationData = new ContainerType({
  beacon_block_root: Bytes32,
  slot: SlotOrEpoch,
  payload_present: boolean,
  blob_data_available: boolean,
});

export const ProposerPreferences = new ContainerType({
  dependent_root: Bytes32,
  proposal_slot: SlotOrEpoch,
  validator_index: uint64,
  fee_recipient: Bytes20,
  target_gas_limit: uint64,
});

/** The builder specification's. */
export const BuilderRequestAuth = new ContainerType({
  data: new ByteListType(MAX_BUILDER_AUTH_BYTES),
  slot: SlotOrEpoch,
});

export const ExecutionPayloadBid = new ProgressiveContainerType(
  {
    parent_block_hash: Bytes32,
    parent_block_root: Bytes32,
    block_hash: Bytes32,
    prev_randao: Bytes32,
    fee_recipient: Bytes20,
    gas_limit: uint64,
    builder_index: uint64,
    slot: SlotOrEpoch,
    value: uint64,
    execution_payment: uint64,
    blob_kzg_commitments: new ProgressiveListCompositeType(Bytes48),
    execution_requests_root: Bytes32,
  },
  allActive(12),
);

const Withdrawal = new ContainerType({ index: uint64, validator_index: uint64, address: Bytes20, amount: uint64 });

const ExecutionPayload = new ProgressiveContainerType(
  {
    parent_hash: Bytes32,
    fee_recipient: Bytes20,
    state_root: Bytes32,
    receipts_root: Bytes32,
    logs_bloom: new ByteVectorType(256),
    prev_randao: Bytes32,
    block_number: uint64,
    gas_limit: uint64,
    gas_used: uint64,
    timestamp: uint64,
    extra_data: new ByteListType(32),
    base_fee_per_gas: uint256,
    block_hash: Bytes32,
    transactions: new ProgressiveListCompositeType(new ProgressiveByteListType()),
    withdrawals: new ProgressiveListCompositeType(Withdrawal),
    blob_gas_used: uint64,
    excess_blob_gas: uint64,
    block_access_list: new ProgressiveByteListType(),
    slot_number: SlotOrEpoch,
  },
  allActive(19),
);

const ExecutionRequests = new ProgressiveContainerType(
  {
    deposits: new ProgressiveListCompositeType(
      new ContainerType({
        pubkey: Bytes48,
        withdrawal_credentials: Bytes32,
        amount: uint64,
        signature: Bytes96,
        index: uint64,
      }),
    ),
    withdrawals: new ProgressiveListCompositeType(
      new ContainerType({ source_address: Bytes20, validator_pubkey: Bytes48, amount: uint64 }),
    ),
    consolidations: new ProgressiveListCompositeType(
      new ContainerType({ source_address: Bytes20, source_pubkey: Bytes48, target_pubkey: Bytes48 }),
    ),
    builder_deposits: new ProgressiveListCompositeType(
      new ContainerType({ pubkey: Bytes48, withdrawal_credentials: Bytes32, amount: uint64, signature: Bytes96 }),
    ),
    builder_exits: new ProgressiveListCompositeType(new ContainerType({ source_address: Bytes20, pubkey: Bytes48 })),
  },
  allActive(5),
);

export const ExecutionPayloadEnvelope = new ProgressiveContainerType(
  {
    payload: ExecutionPayload,
    execution_requests: ExecutionRequests,
    builder_index: uint64,
    beacon_block_root: Bytes32,
    parent_beacon_block_root: Bytes32,
  },
  allActive(5),
);

function allActive(fields: number): boolean[] {
  return Array.from({ length: fields }, () => true);
}
