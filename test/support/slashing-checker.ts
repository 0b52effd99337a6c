// Looks for slashable pairs among released signatures. It knows the conditions under which the beacon chain slashes
// (EIP-3076's own definitions of double and surrounding messages) and nothing of how this program avoids them: its only
// input is what left a signer.

import type { BlockProposal, SlashableMessage, Vote } from '../../signer/slashing/types.ts';

export interface SlashablePair {
  readonly offence: 'double_block' | 'double_vote' | 'surround_vote';
  readonly one: SlashableMessage;
  readonly other: SlashableMessage;
}

/** At least one pair for every key that could be slashed; empty when nobody could. */
export function slashablePairs(released: Iterable<SlashableMessage>): SlashablePair[] {
  const pairs: SlashablePair[] = [];
  for (const messages of Map.groupBy(released, (message) => message.publicKey).values()) {
    pairs.push(
      ...doubleBlocks(messages.filter((message) => message.kind === 'block')),
      ...doubleVotes(messages.filter((message) => message.kind === 'attestation')),
      ...surroundVotes(messages.filter((message) => message.kind === 'attestation')),
    );
  }
  return pairs;
}

function doubleBlocks(blocks: readonly BlockProposal[]): SlashablePair[] {
  return differing(blocks, (block) => block.slot).map(([one, other]) => ({ offence: 'double_block', one, other }));
}

function doubleVotes(votes: readonly Vote[]): SlashablePair[] {
  return differing(votes, (vote) => vote.targetEpoch).map(([one, other]) => ({ offence: 'double_vote', one, other }));
}

/** Messages at one place (slot or target) that are not the same message. */
function differing<Message extends SlashableMessage>(
  messages: readonly Message[],
  placeOf: (message: Message) => number,
): [Message, Message][] {
  const pairs: [Message, Message][] = [];
  for (const [first, ...others] of Map.groupBy(messages, placeOf).values()) {
    if (first === undefined) continue;
    for (const other of others) if (identityOf(other) !== identityOf(first)) pairs.push([first, other]);
  }
  return pairs;
}

/** In ascending order of sources: a vote is surrounded when one with a smaller source had a larger target. */
function surroundVotes(votes: readonly Vote[]): SlashablePair[] {
  const pairs: SlashablePair[] = [];
  const bySource = [...Map.groupBy(votes, (vote) => vote.sourceEpoch)].toSorted(([one], [other]) => one - other);
  let widest: Vote | undefined;
  for (const [_source, sameSource] of bySource) {
    for (const inner of sameSource) {
      if (widest !== undefined && widest.targetEpoch > inner.targetEpoch) {
        pairs.push({ offence: 'surround_vote', one: widest, other: inner });
      }
    }
    for (const vote of sameSource) if (widest === undefined || vote.targetEpoch > widest.targetEpoch) widest = vote;
  }
  return pairs;
}

function identityOf(message: SlashableMessage): string {
  const root = Buffer.from(message.signingRoot).toString('hex');
  return message.kind === 'block' ? root : `${message.sourceEpoch} ${root}`;
}
