// A typed request → the 32 bytes that are signed, and what slashing protection has to know of it. The only place that
// makes signing roots: a root that a client sent is compared by the caller and never used. It trusts the parser's types;
// the chain is the configured network's, whatever the request says, and only the fork is the request's.

import { SYNC_COMMITTEE_BYTES } from '../../api/block-body.ts';
import type { AggregateAndProof as AggregateMessage, BeaconBlock } from '../../api/messages.ts';
import type { ForkInfo, SignRequest } from '../../api/sign-request.ts';
import type { PublicKeyHex, SlashableMessage } from '../../slashing/types.ts';
import type { Network } from '../networks.ts';
import { attestationSigningRoot } from './attestation-root.ts';
import {
  AggregateAndProof,
  AltairBody,
  BeaconBlockHeader,
  bitArray,
  ContributionAndProof,
  ElectraAggregateAndProof,
  MinimalAltairBody,
  Phase0Body,
  SigningData,
  SlotOrEpoch,
  SyncAggregatorSelectionData,
  ValidatorRegistration,
  VoluntaryExit,
} from './containers.ts';
import { type ComputeDomain, computeDomain, DOMAIN_TYPES, type DomainType, forkVersionAt } from './domains.ts';

/** A quarter of mainnet's sync committee; the minimal preset's 8 bits are padded to it (containers.ts). */
const SYNC_SUBCOMMITTEE_BYTES = SYNC_COMMITTEE_BYTES.mainnet / 4;
const ZERO_ROOT = new Uint8Array(32);

/**
 * The root of the message bound to its domain (consensus-specs, compute_signing_root). 32 bytes.
 * @param domains computeDomain, or one that remembers
 */
export function computeSigningRoot(
  request: SignRequest,
  network: Network,
  domains: ComputeDomain = computeDomain,
): Uint8Array {
  const domain = domainOf(request, network, domains);
  if (request.operation === 'ATTESTATION') return attestationSigningRoot(request.message, domain);
  return SigningData.hashTreeRoot({ object_root: objectRoot(request), domain });
}

/** What slashing protection has to judge before this request is signed; null where nothing is slashable. */
export function slashableMessage(
  request: SignRequest,
  publicKey: PublicKeyHex,
  signingRoot: Uint8Array,
): SlashableMessage | null {
  switch (request.operation) {
    case 'BLOCK_V2':
      return { kind: 'block', publicKey, slot: request.message.slot, signingRoot };
    case 'ATTESTATION': {
      const { source, target } = request.message;
      return { kind: 'attestation', publicKey, sourceEpoch: source.epoch, targetEpoch: target.epoch, signingRoot };
    }
    case 'AGGREGATION_SLOT':
    case 'AGGREGATE_AND_PROOF':
    case 'RANDAO_REVEAL':
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF':
    case 'SYNC_COMMITTEE_MESSAGE':
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
    case 'VALIDATOR_REGISTRATION':
    case 'VOLUNTARY_EXIT':
      return null;
    default:
      return unreachable(request);
  }
}

function objectRoot(request: Exclude<SignRequest, { operation: 'ATTESTATION' }>): Uint8Array {
  switch (request.operation) {
    case 'AGGREGATION_SLOT':
      return SlotOrEpoch.hashTreeRoot(request.message.slot);
    case 'AGGREGATE_AND_PROOF':
      return aggregateRoot(request.message);
    case 'BLOCK_V2':
      return BeaconBlockHeader.hashTreeRoot({ ...request.message, body_root: bodyRoot(request.message.body) });
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

/** wire.md, Request bodies, last column. */
function domainOf(request: SignRequest, network: Network, domains: ComputeDomain): Uint8Array {
  const atEpoch = (epoch: number, type: DomainType, fork: ForkInfo) =>
    domains(type, forkVersionAt(epoch, fork), network.genesisValidatorsRoot);
  const atSlot = (slot: number, type: DomainType, fork: ForkInfo) =>
    atEpoch(Math.floor(slot / network.slotsPerEpoch), type, fork);

  switch (request.operation) {
    case 'AGGREGATION_SLOT':
      return atSlot(request.message.slot, DOMAIN_TYPES.SELECTION_PROOF, request.forkInfo);
    case 'AGGREGATE_AND_PROOF':
      return atSlot(request.message.aggregate.data.slot, DOMAIN_TYPES.AGGREGATE_AND_PROOF, request.forkInfo);
    case 'ATTESTATION':
      return atEpoch(request.message.target.epoch, DOMAIN_TYPES.BEACON_ATTESTER, request.forkInfo);
    case 'BLOCK_V2':
      return atSlot(request.message.slot, DOMAIN_TYPES.BEACON_PROPOSER, request.forkInfo);
    case 'RANDAO_REVEAL':
      return atEpoch(request.message.epoch, DOMAIN_TYPES.RANDAO, request.forkInfo);
    case 'VOLUNTARY_EXIT': // EIP-7044: valid for ever under Capella's version, whatever fork the client sent.
      return domains(DOMAIN_TYPES.VOLUNTARY_EXIT, network.capellaForkVersion, network.genesisValidatorsRoot);
    case 'SYNC_COMMITTEE_MESSAGE':
      return atSlot(request.message.slot, DOMAIN_TYPES.SYNC_COMMITTEE, request.forkInfo);
    case 'SYNC_COMMITTEE_SELECTION_PROOF':
      return atSlot(request.message.slot, DOMAIN_TYPES.SYNC_COMMITTEE_SELECTION_PROOF, request.forkInfo);
    case 'SYNC_COMMITTEE_CONTRIBUTION_AND_PROOF':
      return atSlot(request.message.contribution.slot, DOMAIN_TYPES.CONTRIBUTION_AND_PROOF, request.forkInfo);
    case 'VALIDATOR_REGISTRATION': // builder-specs: no fork and no chain but the genesis fork version.
      return domains(DOMAIN_TYPES.APPLICATION_BUILDER, network.genesisForkVersion, ZERO_ROOT);
    default:
      return unreachable(request);
  }
}

/** The Electra container exactly when committee_bits is there (wire.md). */
function aggregateRoot(message: AggregateMessage): Uint8Array {
  const { committee_bits, ...aggregate } = message.aggregate;
  const common = { ...aggregate, aggregation_bits: bitArray(aggregate.aggregation_bits) };
  return committee_bits === undefined
    ? AggregateAndProof.hashTreeRoot({ ...message, aggregate: common })
    : ElectraAggregateAndProof.hashTreeRoot({ ...message, aggregate: { ...common, committee_bits } });
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

function unreachable(request: never): never {
  throw new Error(`no root for this operation: ${(request as SignRequest).operation}`);
}
