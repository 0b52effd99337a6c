// Folds what a file says of one key while it is read. Entries far behind the highest are left out and counted: a store
// refuses everything up to them. Where entries of one place are left out, the one that stays has no root.

import { BLOCKS, type EntryKind, VOTES } from '../history/codes.ts';
import { higherMarks, NO_MARKS } from '../history/head.ts';
import { RETAINED_EPOCHS, RETAINED_SLOTS } from '../history/prune.ts';
import type { BlockEntry, HistoryPart, LeftOutEntries, VoteEntry } from '../types.ts';

/** Of blocks, and of votes: one an epoch for as long as pruning keeps them, and once more. */
export const KEPT_ENTRIES = 1024;

export type HistoryReducer = ReturnType<typeof historyReducer>;

export function historyReducer() {
  let left: LeftOutEntries | undefined;
  const leaveOut = (more: LeftOutEntries): void => {
    left = {
      ...higherMarks(left ?? NO_MARKS, more),
      blocks: (left?.blocks ?? 0) + more.blocks,
      attestations: (left?.attestations ?? 0) + more.attestations,
    };
  };
  const blocks = lastEntries(BLOCKS, RETAINED_SLOTS, ({ slot }) => leaveOut({ ...NOTHING, slot, blocks: 1 }));
  const votes = lastEntries(VOTES, RETAINED_EPOCHS, ({ sourceEpoch, targetEpoch }) =>
    leaveOut({ ...NOTHING, sourceEpoch, targetEpoch, attestations: 1 }),
  );
  return {
    addBlock: blocks.add,
    addVote: votes.add,
    add(part: HistoryPart): void {
      for (const block of part.blocks) blocks.add(block);
      for (const vote of part.attestations) votes.add(vote);
      if (part.leftOut !== undefined) leaveOut(part.leftOut);
    },
    result(): HistoryPart {
      const kept = { blocks: blocks.kept(), attestations: votes.kept() };
      return left === undefined ? kept : { ...kept, leftOut: left };
    },
  };
}

const NOTHING: LeftOutEntries = { ...NO_MARKS, blocks: 0, attestations: 0 };

function lastEntries<Entry extends BlockEntry | VoteEntry>(
  { markOf, placeOf }: EntryKind<Entry>,
  retained: number,
  leaveOut: (entry: Entry) => void,
) {
  /** The highest of the entries at one mark says most. */
  const rankOf = (entry: Entry): number => placeOf(entry)[1] ?? 0;
  let kept: Entry[] = [];
  let highest = 0;

  /** Whole places, from the highest one down. */
  function forget(): void {
    kept.sort((one, other) => markOf(other) - markOf(one));
    const first = kept[KEPT_ENTRIES];
    if (first === undefined) return;
    const place = markOf(first);
    const end = kept.findIndex((entry) => markOf(entry) === place);
    if (end === 0) {
      keepOne();
      return;
    }
    for (const entry of kept.slice(end)) leaveOut(entry);
    kept = kept.slice(0, end);
  }

  /** The highest place alone has more than is kept: one entry without a root says all of it. */
  function keepOne(): void {
    const most = kept
      .filter((entry) => markOf(entry) === highest)
      .reduce((one, other) => (rankOf(other) > rankOf(one) ? other : one));
    for (const entry of kept) if (entry !== most) leaveOut(entry);
    kept = [{ ...most, signingRoot: null }];
  }

  return {
    add(entry: Entry): void {
      const place = markOf(entry);
      if (place < highest - retained) {
        leaveOut(entry);
        return;
      }
      highest = Math.max(highest, place);
      kept.push(entry);
      if (kept.length >= 2 * KEPT_ENTRIES) forget();
    },
    kept(): readonly Entry[] {
      if (kept.length > KEPT_ENTRIES) forget();
      return kept;
    },
  };
}
