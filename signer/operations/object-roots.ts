// The messages whose root takes more than their container: forks, presets and parts that came as a root.

import assert from 'node:assert/strict';
import { type ForkName, isSince } from '../api/forks.ts';
import type { Preset } from '../api/network-table.ts';
import {
  AggregateAndProofType,
  BeaconBlockHeader,
  bitArray,
  ContributionAndProofType,
  ElectraAggregateAndProof,
  GloasAggregateAndProof,
  MinimalElectraAggregateAndProof,
} from './containers.ts';
import { AltairBody, MinimalAltairBody, Phase0Body, SYNC_COMMITTEE_BYTES } from './messages/block-body.ts';
import {
  type AggregateAndProof as AggregateMessage,
  type BeaconBlock,
  COMMITTEE_BYTES,
  type ContributionAndProof as ContributionMessage,
  isOfMinimalSlot,
} from './messages/messages.ts';
import { type EnvelopeMessage, wholeEnvelopeRoot } from './messages/payload-envelope.ts';

/** A quarter of mainnet's sync committee; the minimal preset's 8 bits are padded to it (containers.ts). */
const SYNC_SUBCOMMITTEE_BYTES = SYNC_COMMITTEE_BYTES.mainnet / 4;

export function contributionRoot(message: ContributionMessage): Uint8Array {
  const { contribution } = message;
  const aggregation_bits = new Uint8Array(SYNC_SUBCOMMITTEE_BYTES);
  aggregation_bits.set(contribution.aggregation_bits);
  return ContributionAndProofType.hashTreeRoot({ ...message, contribution: { ...contribution, aggregation_bits } });
}

export function envelopeRoot({ content }: EnvelopeMessage): Uint8Array {
  return content.kind === 'root' ? content.root : wholeEnvelopeRoot(content.envelope);
}

/** Electra adds committee_bits (EIP-7549), Gloas makes the attestation progressive (EIP-7495). */
export function aggregateRoot(message: AggregateMessage, fork: ForkName | undefined): Uint8Array {
  assert(fork !== undefined, 'the fork of an aggregate was judged before its root is computed');
  const { committee_bits, ...aggregate } = message.aggregate;
  const common = { ...aggregate, aggregation_bits: bitArray(aggregate.aggregation_bits) };
  if (!isSince('electra', fork)) return AggregateAndProofType.hashTreeRoot({ ...message, aggregate: common });
  assert(committee_bits !== undefined, 'an aggregate since Electra was checked for its committee_bits');
  const padded = new Uint8Array(COMMITTEE_BYTES.mainnet);
  padded.set(committee_bits);
  const sent = { ...message, aggregate: { ...common, committee_bits: padded } };
  if (isSince('gloas', fork)) return GloasAggregateAndProof.hashTreeRoot(sent); // its bits have no limit
  // That the preset is the network's was judged, too.
  const container = isOfMinimalSlot(committee_bits) ? MinimalElectraAggregateAndProof : ElectraAggregateAndProof;
  return container.hashTreeRoot(sent);
}

export function aggregateContradiction(
  { aggregate: { committee_bits: committees } }: AggregateMessage,
  fork: ForkName,
  preset: Preset,
): string | undefined {
  const hasCommitteeBits = committees !== undefined;
  if (hasCommitteeBits && isOfMinimalSlot(committees) !== (preset === 'minimal')) {
    const expected = preset === 'minimal' ? '1 byte' : '8 bytes';
    return `aggregate_and_proof.aggregate.committee_bits: of preset ${preset} they have ${expected}`;
  }
  if (hasCommitteeBits === isSince('electra', fork)) return undefined;
  const problem = hasCommitteeBits ? 'has none of these' : 'needs them';
  return `aggregate_and_proof.aggregate.committee_bits: the fork of the message, ${fork.toUpperCase()}, ${problem}`;
}

/** The root of a block is the root of its header, so of a full block only the body's root is needed. */
export function blockRoot(block: BeaconBlock): Uint8Array {
  return BeaconBlockHeader.hashTreeRoot({ ...block, body_root: bodyRoot(block.body) });
}

function bodyRoot(body: BeaconBlock['body']): Uint8Array {
  if (body.kind === 'root') return body.root;
  if (body.kind === 'PHASE0') return Phase0Body.rootOf(body.content);
  const minimal = body.content.sync_aggregate.sync_committee_bits.length === SYNC_COMMITTEE_BYTES.minimal;
  return (minimal ? MinimalAltairBody : AltairBody).rootOf(body.content);
}
