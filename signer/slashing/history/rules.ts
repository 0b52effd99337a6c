// The conditions of EIP-3076, once: a backend reads the entries of one key, this file decides. It trusts that they
// were read under a lock and that their integrity codes were checked. It refuses whatever no rule allows.
//
// With the complete history (sqlite, postgres) the low-water marks are those of the history. A store that knows only
// its last message (dynamodb) passes the highest slot and epochs as low-water marks and its last message as the entry.

import { isEndedTenure } from '../../tenure.ts';
import type {
  BlockEntry,
  BlockProposal,
  KeyHistory,
  Marks,
  SlashableMessage,
  SlashingRefusal,
  StoreFloor,
  Vote,
  VoteEntry,
} from '../types.ts';
import { higherMarks, type KeyState, MARKS, NO_MARKS } from './head.ts';

/** A repeat is in the history already: it may be signed again and needs no record. */
export type Decision =
  | { readonly kind: 'safe'; readonly repeat: boolean }
  | { readonly kind: 'refused'; readonly reason: SlashingRefusal };

/** The conditions in their order. @param history all of it, or all that can stand against the message */
export function decide(message: SlashableMessage, { blocks, attestations }: KeyHistory, marks: Marks): Decision {
  return message.kind === 'block' ? decideBlock(message, blocks, marks) : decideVote(message, attestations, marks);
}

function decideBlock({ slot, signingRoot }: BlockProposal, blocks: readonly BlockEntry[], marks: Marks): Decision {
  const entry = blocks.find((past) => past.slot === slot);
  // Condition 1: the same block again is no second block, even at the low-water mark; anything else there is.
  if (entry !== undefined) return sameRoot(entry.signingRoot, signingRoot) ? repeat : refusedBy('double_block');
  // Condition 2. Unlike the sources of votes, a block at the mark itself is refused.
  return marks.slot !== null && slot <= marks.slot ? refusedBy('block_below_low_water_mark') : safe;
}

function decideVote(vote: Vote, votes: readonly VoteEntry[], marks: Marks): Decision {
  const { sourceEpoch, targetEpoch } = vote;
  if (sourceEpoch > targetEpoch) return refusedBy('source_after_target');
  const [entry, another] = votes.filter((past) => past.targetEpoch === targetEpoch);
  if (entry !== undefined) {
    // Condition 3, double votes: the root commits to both epochs; the same root with another source is a damaged entry.
    // Where an import left two votes of one target, no vote is a repeat.
    const isSame = another === undefined && entry.sourceEpoch === sourceEpoch;
    return isSame && sameRoot(entry.signingRoot, vote.signingRoot) ? repeat : refusedBy('double_vote');
  }
  // Condition 3, surround votes.
  const surrounds = votes.some((past) => past.sourceEpoch > sourceEpoch && past.targetEpoch < targetEpoch);
  if (surrounds) return refusedBy('surrounding_vote');
  const isSurrounded = votes.some((past) => past.sourceEpoch < sourceEpoch && past.targetEpoch > targetEpoch);
  if (isSurrounded) return refusedBy('surrounded_vote');
  // Condition 4: at the mark itself a source is still good.
  const isSourceBelow = marks.sourceEpoch !== null && sourceEpoch < marks.sourceEpoch;
  if (isSourceBelow) return refusedBy('source_below_low_water_mark');
  // Condition 5.
  return marks.targetEpoch !== null && targetEpoch <= marks.targetEpoch
    ? refusedBy('target_below_low_water_mark')
    : safe;
}

/** Whether no entry can be at the message's place, surround it or be surrounded by it: then the marks alone decide. */
export function isBeyondHistory(message: SlashableMessage, marks: Marks): boolean {
  if (message.kind === 'block') return marks.slot === null || message.slot > marks.slot;
  return (
    (marks.targetEpoch === null || message.targetEpoch > marks.targetEpoch) &&
    (marks.sourceEpoch === null || message.sourceEpoch >= marks.sourceEpoch)
  );
}

export function marksOf(message: SlashableMessage): Marks {
  if (message.kind === 'block') return { ...NO_MARKS, slot: message.slot };
  return { slot: null, sourceEpoch: message.sourceEpoch, targetEpoch: message.targetEpoch };
}

/** What is not there is covered, and covers nothing else. */
export function coversFloor(one: Marks | null, other: Marks | null): boolean {
  return !isRolledBack(one ?? NO_MARKS, other ?? NO_MARKS);
}

/** A store lost records that this process knows it wrote when any mark is below its floor. */
export function isRolledBack(marks: Marks, floors: Marks): boolean {
  return MARKS.some((mark) => isBelow(marks[mark], floors[mark]));
}

const safe: Decision = { kind: 'safe', repeat: false };
const repeat: Decision = { kind: 'safe', repeat: true };

export function refusedBy(reason: SlashingRefusal): Decision {
  return { kind: 'refused', reason };
}

function sameRoot(stored: Uint8Array | null, asked: Uint8Array): boolean {
  return stored !== null && Buffer.compare(stored, asked) === 0;
}

function isBelow(mark: number | null, floor: number | null): boolean {
  return floor !== null && (mark === null || mark < floor);
}

// The usual message lies beyond everything that its key has signed: the head alone decides. Any other can be refused by
// the head or one row; to call it safe, the store has to read the whole history and prove it complete, because a
// missing row proves nothing by itself.

/** `history`: nothing that was read refuses the message; ask `decideWithHistory`. */
export type Judgement = Decision | { readonly kind: 'history' };

/** @param atSlot need not be read when the message lies beyond all */
export function judgeBlock(
  message: BlockProposal,
  state: KeyState,
  floor: StoreFloor | null,
  atSlot: readonly BlockEntry[],
): Judgement {
  if (!isInTenure(message, state)) return refusedBy('key_retired');
  const isBeyond = isBeyondHistory(message, state.highest);
  const decision = decideBlock(message, isBeyond ? [] : atSlot, higherMarks(floor, state.lowWater));
  return decision.kind === 'safe' && !decision.repeat && !isBeyond ? { kind: 'history' } : decision;
}

/** `against`: one entry that the message surrounds, and one that surrounds it, where they are cheap to find. */
export function judgeVote(
  message: Vote,
  state: KeyState,
  floor: StoreFloor | null,
  atTarget: readonly VoteEntry[],
  against?: readonly VoteEntry[],
): Judgement {
  if (!isInTenure(message, state)) return refusedBy('key_retired');
  const marks = higherMarks(floor, state.lowWater);
  if (isBeyondHistory(message, state.highest)) return decideVote(message, [], marks);
  // A source after its target is refused without a look.
  const isDecided = atTarget.length > 0 || message.sourceEpoch > message.targetEpoch;
  if (isDecided) return decideVote(message, atTarget, marks);
  if (against === undefined) return { kind: 'history' };
  const decision = decideVote(message, against, marks);
  return decision.kind === 'refused' ? decision : { kind: 'history' };
}

export function decideWithHistory(
  message: SlashableMessage,
  state: KeyState,
  floor: StoreFloor | null,
  history: KeyHistory,
): Decision {
  if (!isInTenure(message, state)) return refusedBy('key_retired');
  return decide(message, history, higherMarks(floor, state.lowWater));
}

function isInTenure({ tenure = 0 }: SlashableMessage, state: KeyState): boolean {
  return tenure === state.tenure && !isEndedTenure(tenure);
}
