// The conditions of EIP-3076, once, for every backend that checks: it reads the facts about one key, this file decides.
// It trusts that the facts were read under a lock and that their integrity codes were checked. It refuses whatever
// no rule allows. Nothing here does I/O.
//
// With the complete history (sqlite, postgres) the low-water marks are those of the history. A store that knows only
// its last message (dynamodb) passes the highest slot and epochs as low-water marks and its last message as the entry:
// the same conditions then say "source never decreases, target always increases, the same data may be signed again".

import type { BlockProposal, HighWaterMarks, SlashableMessage, SlashingRefusal, Vote } from '../types.ts';
import { higher } from './higher.ts';

/** What is known of a key about one block proposal. */
export interface BlockFacts {
  /** The entry at the slot of the message. A null root (none was given, or two differ) refuses everything there. */
  readonly entry: { readonly signingRoot: Uint8Array | null } | null;
  /** The lowest slot the history still answers for; null while the key has no block. */
  readonly lowWaterSlot: number | null;
}

/** What is known of a key about one vote. */
export interface AttestationFacts {
  /** The entry for the target of the message. Where there are several for one target, pass a null root. */
  readonly entry: { readonly sourceEpoch: number; readonly signingRoot: Uint8Array | null } | null;
  /** Some entry has a larger source and a smaller target than the message. */
  readonly surroundsAnEntry: boolean;
  /** Some entry has a smaller source and a larger target than the message. */
  readonly isSurroundedByAnEntry: boolean;
  readonly lowWaterSourceEpoch: number | null;
  readonly lowWaterTargetEpoch: number | null;
}

/** A repeat is in the history already, with the same root: it may be signed again and needs no record. */
export type Decision =
  | { readonly kind: 'safe'; readonly repeat: boolean }
  | { readonly kind: 'refused'; readonly reason: SlashingRefusal };

export function decideBlock(message: BlockProposal, facts: BlockFacts): Decision {
  if (facts.entry !== null) {
    // Condition 1: the same block again is no second block, even at the low-water mark; anything else there is.
    return sameRoot(facts.entry.signingRoot, message.signingRoot) ? repeat : refused('double_block');
  }
  // Condition 2. Unlike the sources of votes, a block at the mark itself is refused.
  if (facts.lowWaterSlot !== null && message.slot <= facts.lowWaterSlot) return refused('block_below_low_water_mark');
  return safe;
}

export function decideAttestation(message: Vote, facts: AttestationFacts): Decision {
  if (message.sourceEpoch > message.targetEpoch) return refused('source_after_target');
  if (facts.entry !== null) {
    // Condition 3, double votes: the root commits to both epochs, so the same root with another source is a damaged
    // entry.
    const same = facts.entry.sourceEpoch === message.sourceEpoch;
    return same && sameRoot(facts.entry.signingRoot, message.signingRoot) ? repeat : refused('double_vote');
  }
  // Condition 3, surround votes.
  if (facts.surroundsAnEntry) return refused('surrounding_vote');
  if (facts.isSurroundedByAnEntry) return refused('surrounded_vote');
  // Condition 4: at the mark itself a source is still good.
  if (facts.lowWaterSourceEpoch !== null && message.sourceEpoch < facts.lowWaterSourceEpoch) {
    return refused('source_below_low_water_mark');
  }
  // Condition 5.
  if (facts.lowWaterTargetEpoch !== null && message.targetEpoch <= facts.lowWaterTargetEpoch) {
    return refused('target_below_low_water_mark');
  }
  return safe;
}

/**
 * Whether no entry of the key can be at the message's slot or target, surround it or be surrounded by it, given the
 * highest marks: then the marks alone decide, and a backend need not read the history.
 */
export function isBeyondHistory(message: SlashableMessage, marks: HighWaterMarks): boolean {
  if (message.kind === 'block') return marks.blockSlot === null || message.slot > marks.blockSlot;
  // No entry has a larger target (so none surrounds the vote) nor a larger source (so the vote surrounds none).
  return (
    (marks.targetEpoch === null || message.targetEpoch > marks.targetEpoch) &&
    (marks.sourceEpoch === null || message.sourceEpoch >= marks.sourceEpoch)
  );
}

/** The marks after a message is recorded. */
export function raiseMarks(marks: HighWaterMarks, message: SlashableMessage): HighWaterMarks {
  if (message.kind === 'block') return { ...marks, blockSlot: higher(marks.blockSlot, message.slot) };
  return {
    blockSlot: marks.blockSlot,
    sourceEpoch: higher(marks.sourceEpoch, message.sourceEpoch),
    targetEpoch: higher(marks.targetEpoch, message.targetEpoch),
  };
}

/** Whether a store lost records that this process knows it wrote: any mark is below its floor. */
export function isRolledBack(marks: HighWaterMarks, floors: HighWaterMarks): boolean {
  return (
    isBelow(marks.blockSlot, floors.blockSlot) ||
    isBelow(marks.sourceEpoch, floors.sourceEpoch) ||
    isBelow(marks.targetEpoch, floors.targetEpoch)
  );
}

export const NO_MARKS: HighWaterMarks = { blockSlot: null, sourceEpoch: null, targetEpoch: null };

const safe: Decision = { kind: 'safe', repeat: false };
const repeat: Decision = { kind: 'safe', repeat: true };

export function refused(reason: SlashingRefusal): Decision {
  return { kind: 'refused', reason };
}

function sameRoot(stored: Uint8Array | null, asked: Uint8Array): boolean {
  return stored !== null && Buffer.compare(stored, asked) === 0;
}

function isBelow(mark: number | null, floor: number | null): boolean {
  return floor !== null && (mark === null || mark < floor);
}
