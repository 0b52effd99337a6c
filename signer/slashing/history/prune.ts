// The one rule for what may be forgotten of a key's history, for background pruning and for what an import leaves out.
//
// Entries of blocks with a slot below `highest slot - RETAINED_SLOTS`, and of votes with a target below
// `highest target - RETAINED_EPOCHS`, may be deleted, oldest first, and in the same transaction the low-water marks
// rise:
//   slot mark   = max(itself, highest slot deleted, lowest slot kept)
//   target mark = max(itself, highest target deleted, lowest target kept)
//   source mark = max(itself, highest source deleted, lowest source kept)
// The highest entry always stays. No verdict becomes weaker: a block or a vote that a deleted entry refused lies at or
// below the slot or target mark (double messages, votes surrounded by it) or has a source below the source mark (votes
// that surround it). Only repeats of deleted messages change, from allowed to refused.

import type { BlockEntry, KeyHistory, Marks, VoteEntry } from '../types.ts';
import type { EntryKind } from './codes.ts';
import { higher, higherMarks, type KeyState, lowestOf, marksBy, NO_MARKS } from './head.ts';

/** Kept behind the highest target of a key: as Lighthouse keeps, two days and more. */
export const RETAINED_EPOCHS = 512;
/** For every network: signers of one store have to agree. */
export const RETAINED_SLOTS = RETAINED_EPOCHS * 32;
/** They change one head together, at a tenth of the price of one by one. */
export const GATHERED_EPOCHS = 64;

/** Entries below these may be forgotten; a horizon of 0 forgets nothing. */
export type Horizon = Readonly<Record<'slot' | 'targetEpoch', number>>;

export function horizonOf(highest: Marks): Horizon {
  return {
    slot: Math.max(0, (highest.slot ?? 0) - RETAINED_SLOTS),
    targetEpoch: Math.max(0, (highest.targetEpoch ?? 0) - RETAINED_EPOCHS),
  };
}

type Forgotten = Pick<KeyState, 'lowWater' | 'prunedBelow'>;

/** @param forgotten the highest of them, null where there is none @param lowestKept the same of what stays */
export function forget({ lowWater, prunedBelow }: Forgotten, forgotten: Marks, lowestKept: Marks): Forgotten {
  const raised = (mark: keyof Marks) => {
    const gone = forgotten[mark];
    return gone === null ? lowWater[mark] : higher(lowWater[mark], higher(gone, lowestKept[mark]));
  };
  const pruned = (mark: 'slot' | 'targetEpoch') => {
    const gone = forgotten[mark];
    return gone === null ? prunedBelow[mark] : higher(prunedBelow[mark], lowestKept[mark] ?? gone);
  };
  return {
    lowWater: marksBy(raised),
    prunedBelow: { slot: pruned('slot'), targetEpoch: pruned('targetEpoch') },
  };
}

/** True for an entry that pruning has removed: when the store holds it, it was put back from a copy. */
export function isForgotten<Entry extends BlockEntry | VoteEntry>(
  { markOf, mark }: EntryKind<Entry>,
  state: Pick<KeyState, 'prunedBelow'>,
  entry: Entry,
): boolean {
  return markOf(entry) < (state.prunedBelow[mark] ?? 0);
}

/** For a reader that goes through the history in steps. */
export function keptEntries(state: KeyState) {
  const horizon = horizonOf(state.highest);
  const blocks: BlockEntry[] = [];
  const attestations: VoteEntry[] = [];
  let forgotten = NO_MARKS;
  return {
    block(entry: BlockEntry): void {
      if (entry.slot >= horizon.slot) blocks.push(entry);
      else forgotten = { ...forgotten, slot: higher(forgotten.slot, entry.slot) };
    },
    vote(entry: VoteEntry): void {
      if (entry.targetEpoch >= horizon.targetEpoch) attestations.push(entry);
      else forgotten = higherMarks(forgotten, { ...entry, slot: null });
    },
    /** Once all entries were given: as if those that pruning would remove had been pruned. */
    result(): { readonly state: KeyState; readonly history: KeyHistory } {
      const history = { blocks, attestations };
      return { state: { ...state, ...forget(state, forgotten, lowestOf(history)) }, history };
    },
  };
}
