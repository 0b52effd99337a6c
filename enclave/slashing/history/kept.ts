// Filters the entries of a key for a reader that goes through the history in steps. It leaves out the entries that
// pruning would remove, and raises the marks as pruning would. Pure.

import { higher } from './higher.ts';
import { forgetBlocks, forgetVotes, horizonOf, type VoteEpochs } from './prune.ts';
import type { BlockEntry, KeyHistory, KeyState, VoteEntry } from './state.ts';

export interface KeptEntries {
  block(entry: BlockEntry): void;
  vote(entry: VoteEntry): void;
  /** Once all entries were given: those that stay, and the state of the key as if the others had been pruned. */
  result(): { readonly state: KeyState; readonly history: KeyHistory };
}

export function keptEntries(state: KeyState): KeptEntries {
  const horizon = horizonOf(state.highest);
  const blocks: BlockEntry[] = [];
  const attestations: VoteEntry[] = [];
  let forgottenSlot: number | null = null;
  let forgottenVote: VoteEpochs | null = null;
  return {
    block(entry) {
      if (entry.slot >= horizon.slot) blocks.push(entry);
      else forgottenSlot = higher(forgottenSlot, entry.slot);
    },
    vote(entry) {
      if (entry.targetEpoch >= horizon.targetEpoch) attestations.push(entry);
      else forgottenVote = highest(forgottenVote, entry);
    },
    result() {
      const marks = forgetBlocks(state, forgottenSlot, lowest(blocks.map(({ slot }) => slot)) ?? forgottenSlot ?? 0);
      const after = forgetVotes(marks, forgottenVote, {
        sourceEpoch: lowest(attestations.map(({ sourceEpoch }) => sourceEpoch)) ?? forgottenVote?.sourceEpoch ?? 0,
        targetEpoch: lowest(attestations.map(({ targetEpoch }) => targetEpoch)) ?? forgottenVote?.targetEpoch ?? 0,
      });
      return { state: { ...state, ...after }, history: { blocks, attestations } };
    },
  };
}

function highest(one: VoteEpochs | null, { sourceEpoch, targetEpoch }: VoteEpochs): VoteEpochs {
  return {
    sourceEpoch: Math.max(one?.sourceEpoch ?? 0, sourceEpoch),
    targetEpoch: Math.max(one?.targetEpoch ?? 0, targetEpoch),
  };
}

function lowest(values: readonly number[]): number | null {
  return values.reduce<number | null>((least, value) => (least === null || value < least ? value : least), null);
}
