// The SSZ containers of all messages, with the limits of the mainnet preset. @chainsafe/ssz does not check its input.

import {
  BitArray,
  BitListType,
  ByteVectorType,
  ContainerType,
  ProgressiveBitListType,
  ProgressiveContainerType,
  type UintBigintType,
  type UintNumberType,
} from '@chainsafe/ssz';
import type { Bits } from '../api/primitives.ts';
import { Bytes4, Bytes32, Bytes96, SlotOrEpoch, Uint64 } from './leaves.ts';
import { MAX_VALIDATORS_PER_COMMITTEE, SYNC_COMMITTEE_BYTES } from './messages/block-body.ts';
import { COMMITTEE_BYTES, MAX_VALIDATORS_PER_MINIMAL_SLOT, MAX_VALIDATORS_PER_SLOT } from './messages/messages.ts';

export const ForkData = new ContainerType({ current_version: Bytes4, genesis_validators_root: Bytes32 });

export const SigningData = new ContainerType({ object_root: Bytes32, domain: Bytes32 });

export const AttestationData = attestationData(SlotOrEpoch);

export const BeaconBlockHeader = blockHeader(SlotOrEpoch);

export const ContributionAndProofType = new ContainerType({
  aggregator_index: Uint64,
  contribution: new ContainerType({
    slot: SlotOrEpoch,
    beacon_block_root: Bytes32,
    subcommittee_index: Uint64,
    // The minimal preset's 8 bits and mainnet's 128 both fill one chunk with zeros.
    aggregation_bits: new ByteVectorType(SYNC_COMMITTEE_BYTES.mainnet / 4),
    signature: Bytes96,
  }),
  selection_proof: Bytes96,
});

export const AggregateAndProofType = new ContainerType({
  aggregator_index: Uint64,
  aggregate: new ContainerType({
    aggregation_bits: new BitListType(MAX_VALIDATORS_PER_COMMITTEE),
    data: AttestationData,
    signature: Bytes96,
  }),
  selection_proof: Bytes96,
});

/** EIP-7549. @param maxBits of all committees of a slot: a preset's, and the one difference between presets */
function electraAggregateAndProof(maxBits: number) {
  return new ContainerType({
    aggregator_index: Uint64,
    aggregate: new ContainerType({
      aggregation_bits: new BitListType(maxBits),
      data: AttestationData,
      signature: Bytes96,
      /** Bitvector[64], hashed as its bytes. The minimal preset's 4 bits fill the same chunk with zeros behind them. */
      committee_bits: new ByteVectorType(COMMITTEE_BYTES.mainnet),
    }),
    selection_proof: Bytes96,
  });
}

export const ElectraAggregateAndProof = electraAggregateAndProof(MAX_VALIDATORS_PER_SLOT);
export const MinimalElectraAggregateAndProof = electraAggregateAndProof(MAX_VALIDATORS_PER_MINIMAL_SLOT);

/** Gloas: the attestation is a progressive container (EIP-7495) and its bits a progressive list (EIP-7916). */
export const GloasAggregateAndProof = new ContainerType({
  aggregator_index: Uint64,
  aggregate: new ProgressiveContainerType(
    {
      aggregation_bits: new ProgressiveBitListType(),
      data: AttestationData,
      signature: Bytes96,
      committee_bits: new ByteVectorType(COMMITTEE_BYTES.mainnet),
    },
    [true, true, true, true],
  ),
  selection_proof: Bytes96,
});

export function bitArray({ bytes, length }: Bits): BitArray {
  return new BitArray(bytes, length);
}

function attestationData<T extends UintNumberType | UintBigintType>(slotOrEpoch: T) {
  const checkpoint = new ContainerType({ epoch: slotOrEpoch, root: Bytes32 });
  return new ContainerType({
    slot: slotOrEpoch,
    index: Uint64,
    beacon_block_root: Bytes32,
    source: checkpoint,
    target: checkpoint,
  });
}

function blockHeader<T extends UintNumberType | UintBigintType>(slot: T) {
  return new ContainerType({
    slot,
    proposer_index: Uint64,
    parent_root: Bytes32,
    state_root: Bytes32,
    body_root: Bytes32,
  });
}
