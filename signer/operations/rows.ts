// The operations, a row each (row.ts says what a column is). Adding one is a row here with its name in
// api/operations.ts, a vector, and its line of specification/signing.md#bodies.

import { encodeHex } from '../../common/formats/hex.ts';
import type { Operation } from '../api/operations.ts';
import { SlotOrEpoch } from './leaves.ts';
import {
  BuilderRequestAuth,
  builderRequestAuth,
  ExecutionPayloadBid,
  executionPayloadBid,
  PayloadAttestationData,
  ProposerPreferences,
  payloadAttestationData,
  proposerPreferences,
} from './messages/gloas-messages.ts';
import {
  aggregateAndProof,
  aggregationSlot,
  beaconBlock,
  contributionAndProof,
  randaoReveal,
  SyncAggregatorSelectionData,
  syncCommitteeMessage,
  ValidatorRegistration,
  VoluntaryExit,
} from './messages/messages.ts';
import { executionPayloadEnvelope } from './messages/payload-envelope.ts';
import { aggregateContradiction, aggregateRoot, blockRoot, contributionRoot, envelopeRoot } from './object-roots.ts';
import { type OperationRow, type Payment, type Position, row } from './row.ts';
import { ATTESTATION } from './vote.ts';

const atSlot = ({ slot }: { readonly slot: number }): Position => ({ slot });
const atEpoch = ({ epoch }: { readonly epoch: number }): Position => ({ epoch });

/** Half as long as hex: these names are remembered. */
const short = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

const paymentTo = (feeRecipient: Uint8Array, gasLimit: bigint): Payment => ({
  feeRecipient: encodeHex(feeRecipient),
  gasLimit,
});

export const ROWS = {
  AGGREGATION_SLOT: row({
    members: ['aggregation_slot'],
    message: aggregationSlot,
    domain: 0x05000000,
    fork: 'any',
    isHealable: true,
    isForBatches: true,
    place: atSlot,
    root: ({ slot }) => SlotOrEpoch.hashTreeRoot(slot),
  }),
  AGGREGATE_AND_PROOF: row({
    members: ['aggregate_and_proof'],
    otherTypes: ['AGGREGATE_AND_PROOF_V2'],
    message: aggregateAndProof,
    domain: 0x06000000,
    fork: 'phase0',
    isHealable: true,
    place: ({ aggregate }) => ({ slot: aggregate.data.slot }),
    root: aggregateRoot,
    contradiction: aggregateContradiction,
  }),
  ATTESTATION,
  BLOCK_V2: row({
    members: ['beacon_block'],
    message: beaconBlock,
    domain: 0x00000000,
    fork: 'any', // a header; of a full block the stated fork names the body's container, and its hash is in the header
    place: atSlot,
    root: blockRoot,
    slashable: ({ slot }, { publicKey, tenure }, signingRoot) => ({
      kind: 'block',
      publicKey,
      tenure,
      slot,
      signingRoot,
    }),
  }),
  RANDAO_REVEAL: row({
    members: ['randao_reveal'],
    message: randaoReveal,
    domain: 0x02000000,
    fork: 'any',
    isHealable: true,
    isForBatches: true,
    place: atEpoch,
    root: ({ epoch }) => SlotOrEpoch.hashTreeRoot(epoch),
  }),
  SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF: row({
    members: ['contribution_and_proof'],
    message: contributionAndProof,
    domain: 0x09000000,
    fork: 'any',
    isHealable: true,
    place: ({ contribution }) => ({ slot: contribution.slot }),
    root: contributionRoot,
  }),
  SYNC_COMMITTEE_MESSAGE: row({
    members: ['sync_committee_message'],
    message: syncCommitteeMessage,
    domain: 0x07000000,
    fork: 'any',
    isHealable: true,
    isForBatches: true,
    place: atSlot,
    root: ({ beacon_block_root }) => beacon_block_root,
  }),
  SYNC_COMMITTEE_SELECTION_PROOF: row({
    members: ['sync_aggregator_selection_data'],
    message: SyncAggregatorSelectionData.schema,
    domain: 0x08000000,
    fork: 'any',
    isHealable: true,
    isForBatches: true,
    place: atSlot,
    root: SyncAggregatorSelectionData.rootOf,
  }),
  VALIDATOR_REGISTRATION: row({
    members: ['validator_registration'],
    message: ValidatorRegistration.schema,
    domain: 0x00000001,
    fork: 'genesis',
    root: ValidatorRegistration.rootOf,
    payment: ({ fee_recipient, gas_limit }) => paymentTo(fee_recipient, gas_limit),
  }),
  VOLUNTARY_EXIT: row({
    members: ['voluntary_exit'],
    message: VoluntaryExit.schema,
    domain: 0x04000000,
    fork: 'capella',
    place: atEpoch,
    root: VoluntaryExit.rootOf,
  }),
  PAYLOAD_ATTESTATION_MESSAGE: row({
    members: ['payload_attestation_message', 'payload_attestation_data', 'payload_attestation'],
    otherTypes: ['PAYLOAD_ATTESTATION'],
    message: payloadAttestationData,
    domain: 0x0c000000,
    fork: 'gloas',
    isForBatches: true,
    place: atSlot,
    root: PayloadAttestationData.rootOf,
    claim: ({ slot }) => ({ name: `payload ${slot}`, slot }),
  }),
  PROPOSER_PREFERENCES: row({
    members: ['proposer_preferences'],
    message: proposerPreferences,
    domain: 0x0d000000,
    fork: 'gloas',
    isHealable: true,
    place: ({ proposal_slot }) => ({ slot: proposal_slot }), // often the next fork's: asked for in the epoch before
    root: ProposerPreferences.rootOf,
    payment: ({ fee_recipient, target_gas_limit }) => paymentTo(fee_recipient, target_gas_limit),
  }),
  EXECUTION_PAYLOAD_ENVELOPE: row({
    members: ['execution_payload_envelope'],
    message: executionPayloadEnvelope,
    domain: 0x0b000000,
    fork: 'gloas',
    place: atSlot,
    root: envelopeRoot,
    payment: ({ feeRecipient, gasLimit, builderIndex }) => ({ ...paymentTo(feeRecipient, gasLimit), builderIndex }),
    claim: ({ slot }) => ({ name: `envelope ${slot}`, slot }),
    block: ({ slot, beaconBlockRoot }) => ({ slot, root: beaconBlockRoot }),
  }),
  EXECUTION_PAYLOAD_BID: row({
    members: ['execution_payload_bid'],
    message: executionPayloadBid,
    domain: 0x0b000000,
    fork: 'gloas',
    option: 'builder', // it commits the money of a builder
    place: atSlot,
    root: ExecutionPayloadBid.rootOf,
    // The parent's payload may be missing from the chain or not: two parents of one block root.
    claim: ({ slot, parent_block_root, parent_block_hash }) => ({
      name: `bid ${slot} ${short(parent_block_root)}${short(parent_block_hash)}`,
      slot,
      isMadeBefore: true,
    }),
  }),
  BUILDER_REQUEST_AUTH: row({
    members: ['builder_request_auth', 'request_auth'],
    otherTypes: ['REQUEST_AUTH'],
    message: builderRequestAuth,
    domain: 0x0b000001,
    fork: 'genesis',
    place: atSlot,
    root: BuilderRequestAuth.rootOf,
    payment: ({ data }) => ({ builder: encodeHex(data) }),
  }),
} as const satisfies Readonly<Record<Operation, OperationRow>>;
