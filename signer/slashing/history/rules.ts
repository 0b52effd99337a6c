// The conditions of EIP-3076, once: a backend reads the facts about one key, this file decides. It trusts that they
// were read under a lock and that their integrity codes were checked. It refuses whatever no rule allows.
//
// With the complete history (sqlite, postgres) the low-water marks are those of the history. A store that knows only
// its last message (dynamodb) passes the highest slot and epochs as low-water marks and its last message as the entry.

import { isEnded } from '../../tenure.ts';
import type {
  BlockEntry,
  BlockProposal,
  HighWaterMarks,
  HistoryPart,
  KeyHistory,
  SlashableMessage,
  SlashingRefusal,
  StoreFloor,
  Vote,
  VoteEntry,
} from '../types.ts';

export interface BlockFacts {
  /** A null root (none was given, or two differ) refuses everything at the slot. */
  readonly entry: { readonly signingRoot: Uint8Array | null } | null;
  readonly lowWaterSlot: number | null;
}

export interface AttestationFacts {
  /** Where there are several for one target, pass a null root. */
  readonly entry: { readonly sourceEpoch: number; readonly signingRoot: Uint8Array | null } | null;
  readonly surroundsAnEntry: boolean;
  readonly isSurroundedByAnEntry: boolean;
  readonly lowWaterSourceEpoch: number | null;
  readonly lowWaterTargetEpoch: number | null;
}

/** A repeat is in the history already: it may be signed again and needs no record. */
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
    // Condition 3, double votes: the root commits to both epochs; the same root with another source is a damaged entry.
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

/** Whether no entry can be at the message's place, surround it or be surrounded by it: then the marks alone decide. */
export function isBeyondHistory(message: SlashableMessage, marks: HighWaterMarks): boolean {
  if (message.kind === 'block') return marks.blockSlot === null || message.slot > marks.blockSlot;
  return (
    (marks.targetEpoch === null || message.targetEpoch > marks.targetEpoch) &&
    (marks.sourceEpoch === null || message.sourceEpoch >= marks.sourceEpoch)
  );
}

export function marksOf(message: SlashableMessage): HighWaterMarks {
  if (message.kind === 'block') return { ...NO_MARKS, blockSlot: message.slot };
  return { blockSlot: null, sourceEpoch: message.sourceEpoch, targetEpoch: message.targetEpoch };
}

/** A store lost records that this process knows it wrote when any mark is below its floor. */
export function isRolledBack(marks: HighWaterMarks, floors: HighWaterMarks): boolean {
  return (
    isBelow(marks.blockSlot, floors.blockSlot) ||
    isBelow(marks.sourceEpoch, floors.sourceEpoch) ||
    isBelow(marks.targetEpoch, floors.targetEpoch)
  );
}

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
  atSlot: BlockEntry | undefined,
): Judgement {
  if (!isInTenure(message, state)) return refused('key_retired');
  const isBeyond = isBeyondHistory(message, state.highest);
  const entry = isBeyond ? null : (atSlot ?? null);
  const decision = decideBlock(message, { entry, lowWaterSlot: effectiveLowWater(state, floor).slot });
  return decision.kind === 'safe' && entry === null && !isBeyond ? { kind: 'history' } : decision;
}

/** `against`: one entry that the message surrounds, and one that surrounds it, where they are cheap to find. */
export function judgeVote(
  message: Vote,
  state: KeyState,
  floor: StoreFloor | null,
  atTarget: readonly VoteEntry[],
  against?: readonly VoteEntry[],
): Judgement {
  if (!isInTenure(message, state)) return refused('key_retired');
  if (isBeyondHistory(message, state.highest)) return decideVote(message, state, floor, NO_VOTES);
  // A source after its target is refused without a look.
  const isDecided = atTarget.length > 0 || message.sourceEpoch > message.targetEpoch;
  if (isDecided) return decideVote(message, state, floor, { attestations: atTarget });
  if (against === undefined) return { kind: 'history' };
  const decision = decideVote(message, state, floor, { attestations: against });
  return decision.kind === 'refused' ? decision : { kind: 'history' };
}

export function decideWithHistory(
  message: SlashableMessage,
  state: KeyState,
  floor: StoreFloor | null,
  history: KeyHistory,
): Decision {
  if (!isInTenure(message, state)) return refused('key_retired');
  if (message.kind === 'attestation') return decideVote(message, state, floor, history);
  const entry = history.blocks.find(({ slot }) => slot === message.slot) ?? null;
  return decideBlock(message, { entry, lowWaterSlot: effectiveLowWater(state, floor).slot });
}

function isInTenure({ tenure = 0 }: SlashableMessage, state: KeyState): boolean {
  return tenure === state.tenure && !isEnded(tenure);
}

const NO_VOTES = { attestations: [] };

function decideVote(
  message: Vote,
  state: KeyState,
  floor: StoreFloor | null,
  { attestations }: Pick<KeyHistory, 'attestations'>,
): Decision {
  const { sourceEpoch, targetEpoch } = message;
  const [entry = null, another] = attestations.filter((past) => past.targetEpoch === targetEpoch);
  const marks = effectiveLowWater(state, floor);
  return decideAttestation(message, {
    entry: another === undefined || entry === null ? entry : { ...entry, signingRoot: null },
    surroundsAnEntry: attestations.some((past) => past.sourceEpoch > sourceEpoch && past.targetEpoch < targetEpoch),
    isSurroundedByAnEntry: attestations.some(
      (past) => past.sourceEpoch < sourceEpoch && past.targetEpoch > targetEpoch,
    ),
    lowWaterSourceEpoch: marks.sourceEpoch,
    lowWaterTargetEpoch: marks.targetEpoch,
  });
}

// The head of a key: what a complete store knows of it besides its entries, and what these must be.

/** Conditions 2, 4 and 5 of EIP-3076; null while a key has no entry of the kind. */
export interface LowWaterMarks {
  readonly slot: number | null;
  readonly sourceEpoch: number | null;
  readonly targetEpoch: number | null;
}

/** The count, and the multiset hash (codes.ts). */
export interface EntrySet {
  readonly count: number;
  readonly digest: Uint8Array;
}

/** Entries below these were pruned, or never kept: one that is there is damage. Null: nothing was forgotten. */
export interface PrunedBelow {
  readonly slot: number | null;
  readonly targetEpoch: number | null;
}

export interface KeyState {
  readonly highest: HighWaterMarks;
  readonly lowWater: LowWaterMarks;
  readonly prunedBelow: PrunedBelow;
  readonly blocks: EntrySet;
  readonly attestations: EntrySet;
  readonly tenure: number;
}

export const NO_MARKS: HighWaterMarks = { blockSlot: null, sourceEpoch: null, targetEpoch: null };
export const NO_LOW_WATER: LowWaterMarks = { slot: null, sourceEpoch: null, targetEpoch: null };
const NO_ENTRIES: EntrySet = { count: 0, digest: new Uint8Array(16) };

export const NEW_KEY: KeyState = {
  highest: NO_MARKS,
  lowWater: NO_LOW_WATER,
  prunedBelow: { slot: null, targetEpoch: null },
  blocks: NO_ENTRIES,
  attestations: NO_ENTRIES,
  tenure: 0,
};

export function hasRecords({ highest, lowWater }: KeyState): boolean {
  return [...Object.values(highest), ...Object.values(lowWater)].some((mark) => mark !== null);
}

export function effectiveLowWater({ lowWater }: Pick<KeyState, 'lowWater'>, floor: StoreFloor | null): LowWaterMarks {
  return floor === null ? lowWater : raisedTo(lowWater, floorMarks(floor));
}

export function effectiveHighest({ highest }: Pick<KeyState, 'highest'>, floor: StoreFloor | null): HighWaterMarks {
  return floor === null ? highest : higherMarks(highest, floorMarks(floor));
}

export function floorMarks({ slot, sourceEpoch, targetEpoch }: StoreFloor): HighWaterMarks {
  return { blockSlot: slot, sourceEpoch, targetEpoch };
}

export function raisedTo(
  lowWater: LowWaterMarks,
  { blockSlot, sourceEpoch, targetEpoch }: HighWaterMarks,
): LowWaterMarks {
  return {
    slot: higher(lowWater.slot, blockSlot),
    sourceEpoch: higher(lowWater.sourceEpoch, sourceEpoch),
    targetEpoch: higher(lowWater.targetEpoch, targetEpoch),
  };
}

export function higherMarks(one: HighWaterMarks, other: HighWaterMarks): HighWaterMarks {
  return {
    blockSlot: higher(one.blockSlot, other.blockSlot),
    sourceEpoch: higher(one.sourceEpoch, other.sourceEpoch),
    targetEpoch: higher(one.targetEpoch, other.targetEpoch),
  };
}

/** Null is lower than every number. */
export function higher<Other extends number | null>(mark: number | null, other: Other): number | Other {
  if (mark === null) return other;
  return other === null || mark > other ? mark : other;
}

export function highestOf({ blocks, attestations, leftOut }: HistoryPart): HighWaterMarks {
  const left: HighWaterMarks = leftOut ?? NO_MARKS;
  const most = (marks: readonly number[], least: number | null) => marks.reduce<number | null>(higher, least);
  return {
    blockSlot: most(blocks.map(slotOf), left.blockSlot),
    sourceEpoch: most(attestations.map(sourceOf), left.sourceEpoch),
    targetEpoch: most(attestations.map(targetOf), left.targetEpoch),
  };
}

export function lowestOf({ blocks, attestations }: KeyHistory): LowWaterMarks {
  const least = (marks: readonly number[]) =>
    marks.reduce<number | null>((lowest, mark) => Math.min(lowest ?? mark, mark), null);
  return {
    slot: least(blocks.map(slotOf)),
    sourceEpoch: least(attestations.map(sourceOf)),
    targetEpoch: least(attestations.map(targetOf)),
  };
}

export const slotOf = ({ slot }: BlockEntry): number => slot;
const sourceOf = ({ sourceEpoch }: VoteEntry): number => sourceEpoch;
export const targetOf = ({ targetEpoch }: VoteEntry): number => targetEpoch;
