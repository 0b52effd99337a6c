// Chooses what an EIP-3076 file says about a key, so that a reader of the file refuses everything that this store
// refuses. A reader takes its marks from the lowest entries of the file. It does not know the marks and floors of this
// store, nor what was pruned. Where the entries alone would allow more than the marks here, the file gets additional
// entries without a root. Pure.

import type { StoreFloor } from '../types.ts';
import { type BlockEntry, effectiveLowWater, higher, type KeyHistory, type KeyState, type VoteEntry } from './state.ts';

/** `history`: the whole history of the key, shown to be whole. */
export function exportedHistory(state: KeyState, floor: StoreFloor | null, history: KeyHistory): KeyHistory {
  return { blocks: exportedBlocks(state, floor, history), attestations: exportedVotes(state, floor, history) };
}

/** What a file has to say of a key that a store has no entries of, because of its floor. */
export function historyOfFloor({ slot, sourceEpoch, targetEpoch }: StoreFloor): KeyHistory {
  return { blocks: [{ slot, signingRoot: null }], attestations: [{ sourceEpoch, targetEpoch, signingRoot: null }] };
}

/** Blocks below the mark say nothing that the mark does not say; where none is left, an entry at the mark says it. */
function exportedBlocks(state: KeyState, floor: StoreFloor | null, { blocks }: KeyHistory): readonly BlockEntry[] {
  const { slot } = effectiveLowWater(state, floor);
  if (slot === null) return blocks;
  const above = blocks.filter((block) => block.slot >= slot);
  return above.length > 0 ? above : [{ slot, signingRoot: null }];
}

/** Where some vote lies below the marks, one vote without a root at the highest epochs says more than all of them. */
function exportedVotes(state: KeyState, floor: StoreFloor | null, { attestations }: KeyHistory): readonly VoteEntry[] {
  const { sourceEpoch, targetEpoch } = effectiveLowWater(state, floor);
  const sayAsMuch =
    attestations.every((vote) => vote.sourceEpoch >= (sourceEpoch ?? 0) && vote.targetEpoch >= (targetEpoch ?? 0)) &&
    (attestations.length > 0 || targetEpoch === null);
  if (sayAsMuch) return attestations;
  return [
    {
      sourceEpoch: higher(state.highest.sourceEpoch, sourceEpoch) ?? 0,
      targetEpoch: higher(state.highest.targetEpoch, targetEpoch) ?? 0,
      signingRoot: null,
    },
  ];
}
