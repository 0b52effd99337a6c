// Computes the hash_tree_root of a typed request, in the container of its fork, which the caller has checked.

import assert from 'node:assert/strict';
import type { ForkName } from '../../api/forks.ts';
import { SYNC_COMMITTEE_BYTES } from '../../api/messages/block-body.ts';
import {
  type AggregateAndProof as AggregateMessage,
  type BeaconBlock,
  COMMITTEE_BYTES,
  isOfMinimalSlot,
} from '../../api/messages/messages.ts';
import type { EnvelopeMessage } from '../../api/messages/payload-envelope.ts';
import { unreachable } from '../../api/operations.ts';
import type { SignRequest } from '../../api/sign-request.ts';
import { isSince } from '../message-fork.ts';
import {
  AggregateAndProof,
  AltairBody,
  BeaconBlockHeader,
  BuilderRequestAuth,
  bitArray,
  ContributionAndProof,
  ElectraAggregateAndProof,
  ExecutionPayloadBid,
  ExecutionPayloadEnvelope,
  GloasAggregateAndProof,
  MinimalAltairBody,
  MinimalElectraAggregateAndProof,
  PayloadAttestationData,
  Phase0Body,
  ProposerPreferences,
  SyncAggregatorSelectionData,
  ValidatorRegistration,
  VoluntaryExit,
} from './containers.ts';
import { SlotOrEpoch } from './leaves.ts';

/** A quarter of mainnet's sync committee; the minimal preset's 8 bits are padded to it (containers.ts). */
const SYNC_SUBCOMMITTEE_BYTES = SYNC_COMMITTEE_BYTES.mainnet / 4;

export function objectRoot(
  request: Exclude<SignRequest, { operation: 'ATTESTATION' }>,
  fork: ForkName | undefined,
): Uint8Array {
  switch (request.operation) {
    case 'AGGREGATION_SLOT':
      return SlotOrEpoch.hashTreeRoot(request.message.slot);
    case 'AGGREGATE_AND_PROOF':
      return aggregateRoot(request.message, fork);
    case 'BLOCK_V2':
      return BeaconBlockHeader.hashTreeRoot({ ...request.message, body_root: bodyRoot(request.message.body) });
    case 'BUILDER_REQUEST_AUTH':
      return BuilderRequestAuth.hashTreeRoot(request.message);
    case 'EXECUTION_PAYLOAD_BID':
      return ExecutionPayloadBid.hashTreeRoot(request.message);
    case 'EXECUTION_PAYLOAD_ENVELOPE':
      return envelopeRoot(request.message);
    case 'PAYLOAD_ATTESTATION_MESSAGE':
      return PayloadAttestationData.hashTreeRoot(request.message);
    case 'PROPOSER_PREFERENCES':
      return ProposerPreferences.hashTreeRoot(request.message);
    case 'RANDAO_REVEAL':
      return SlotOrEpoch.hashTreeRoot(request.message.epoch);
    case 'VOLUNTARY_EXIT':
      return VoluntaryExit.hashTreeRoot(request.message);
    case 'SYNC_COMMITTEE_MESSAGE':
      return request.message.beacon_block_root;
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
      return SyncAggregatorSelectionData.hashTreeRoot(request.message);
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF': {
      const { contribution } = request.message;
      const aggregation_bits = new Uint8Array(SYNC_SUBCOMMITTEE_BYTES);
      aggregation_bits.set(contribution.aggregation_bits);
      return ContributionAndProof.hashTreeRoot({
        ...request.message,
        contribution: { ...contribution, aggregation_bits },
      });
    }
    case 'VALIDATOR_REGISTRATION':
      return ValidatorRegistration.hashTreeRoot(request.message);
    default:
      return unreachable(request);
  }
}

export function envelopeRoot({ content }: EnvelopeMessage): Uint8Array {
  return content.kind === 'root' ? content.root : ExecutionPayloadEnvelope.hashTreeRoot(content.envelope);
}

/** Electra adds committee_bits (EIP-7549), Gloas makes the attestation progressive (EIP-7495). */
function aggregateRoot(message: AggregateMessage, fork: ForkName | undefined): Uint8Array {
  assert(fork !== undefined, 'the fork of an aggregate was judged before its root is computed');
  const { committee_bits, ...aggregate } = message.aggregate;
  const common = { ...aggregate, aggregation_bits: bitArray(aggregate.aggregation_bits) };
  if (!isSince('electra', fork)) return AggregateAndProof.hashTreeRoot({ ...message, aggregate: common });
  assert(committee_bits !== undefined, 'an aggregate since Electra was checked for its committee_bits');
  const padded = new Uint8Array(COMMITTEE_BYTES.mainnet);
  padded.set(committee_bits);
  const sent = { ...message, aggregate: { ...common, committee_bits: padded } };
  if (isSince('gloas', fork)) return GloasAggregateAndProof.hashTreeRoot(sent); // its bits have no limit
  // That the preset is the network's was judged, too.
  const container = isOfMinimalSlot(committee_bits) ? MinimalElectraAggregateAndProof : ElectraAggregateAndProof;
  return container.hashTreeRoot(sent);
}

/** The root of a block is the root of its header, so of a full block only the body's root is needed. */
function bodyRoot(body: BeaconBlock['body']): Uint8Array {
  if (body.kind === 'root') return body.root;
  const attestations = body.content.attestations.map((attestation) => ({
    ...attestation,
    aggregation_bits: bitArray(attestation.aggregation_bits),
  }));
  if (body.kind === 'PHASE0') return Phase0Body.hashTreeRoot({ ...body.content, attestations });
  const minimal = body.content.sync_aggregate.sync_committee_bits.length === SYNC_COMMITTEE_BYTES.minimal;
  return (minimal ? MinimalAltairBody : AltairBody).hashTreeRoot({ ...body.content, attestations });
}
