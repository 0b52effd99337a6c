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

import type { BlockEntry, HighWaterMarks, KeyHistory, VoteEntry, VoteEpochs } from '../types.ts';
import type { EntryKind } from './codes.ts';
import { higher, higherMarks, type KeyState, lowest, NO_MARKS } from './rules.ts';

/** Kept behind the highest target of a key: as Lighthouse keeps, two days and more. */
export const RETAINED_EPOCHS = 512;
/** For every network: signers of one store have to agree. */
export const RETAINED_SLOTS = RETAINED_EPOCHS * 32;
/** They change one head together, at a tenth of the price of one by one. */
export const GATHERED_EPOCHS = 64;

/** Entries below these may be forgotten; a horizon of 0 forgets nothing. */
export interface Horizon {
  readonly slot: number;
  readonly targetEpoch: number;
}

export function horizonOf(highest: HighWaterMarks): Horizon {
  return {
    slot: Math.max(0, (highest.blockSlot ?? 0) - RETAINED_SLOTS),
    targetEpoch: Math.max(0, (highest.targetEpoch ?? 0) - RETAINED_EPOCHS),
  };
}

type Marks = Pick<KeyState, 'lowWater' | 'prunedBelow'>;

/** @param forgotten the highest slot among them; null: nothing changes @param lowestKept there always is one */
export function forgetBlocks({ lowWater, prunedBelow }: Marks, forgotten: number | null, lowestKept: number): Marks {
  if (forgotten === null) return { lowWater, prunedBelow };
  return {
    lowWater: { ...lowWater, slot: higher(lowWater.slot, Math.max(forgotten, lowestKept)) },
    prunedBelow: { ...prunedBelow, slot: higher(prunedBelow.slot, lowestKept) },
  };
}

export function forgetVotes(
  { lowWater, prunedBelow }: Marks,
  forgotten: VoteEpochs | null,
  lowestKept: VoteEpochs,
): Marks {
  if (forgotten === null) return { lowWater, prunedBelow };
  return {
    lowWater: {
      slot: lowWater.slot,
      sourceEpoch: higher(lowWater.sourceEpoch, Math.max(forgotten.sourceEpoch, lowestKept.sourceEpoch)),
      targetEpoch: higher(lowWater.targetEpoch, Math.max(forgotten.targetEpoch, lowestKept.targetEpoch)),
    },
    prunedBelow: { ...prunedBelow, targetEpoch: higher(prunedBelow.targetEpoch, lowestKept.targetEpoch) },
  };
}

/** @param forgotten source and target need not be of one vote */
export function forget(before: Marks, forgotten: HighWaterMarks, { blocks, attestations }: KeyHistory): Marks {
  const { blockSlot, sourceEpoch, targetEpoch } = forgotten;
  const epochs = sourceEpoch === null || targetEpoch === null ? null : { sourceEpoch, targetEpoch };
  const marks = forgetBlocks(before, blockSlot, lowest(blocks, 'slot') ?? blockSlot ?? 0);
  return forgetVotes(marks, epochs, {
    sourceEpoch: lowest(attestations, 'sourceEpoch') ?? sourceEpoch ?? 0,
    targetEpoch: lowest(attestations, 'targetEpoch') ?? targetEpoch ?? 0,
  });
}

/** Then somebody put a forgotten entry back. */
export function isForgotten<Entry extends BlockEntry | VoteEntry>(
  { placeOf, prunedBelow }: EntryKind<Entry>,
  state: Pick<KeyState, 'prunedBelow'>,
  entry: Entry,
): boolean {
  return (placeOf(entry)[0] ?? 0) < (state.prunedBelow[prunedBelow] ?? 0);
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
      else forgotten = { ...forgotten, blockSlot: higher(forgotten.blockSlot, entry.slot) };
    },
    vote(entry: VoteEntry): void {
      if (entry.targetEpoch >= horizon.targetEpoch) attestations.push(entry);
      else forgotten = higherMarks(forgotten, { ...entry, blockSlot: null });
    },
    /** Once all entries were given: as if those that pruning would remove had been pruned. */
    result(): { readonly state: KeyState; readonly history: KeyHistory } {
      const history = { blocks, attestations };
      return { state: { ...state, ...forget(state, forgotten, history) }, history };
    },
  };
}
