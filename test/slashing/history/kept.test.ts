// What is handed on of a history that is read in steps: what pruning would leave, and marks that refuse the rest.

import { expect, it } from 'vitest';
import { NEW_KEY } from '../../../signer/slashing/history/head.ts';
import { keptEntries, RETAINED_EPOCHS, RETAINED_SLOTS } from '../../../signer/slashing/history/prune.ts';

const SLOT = RETAINED_SLOTS + 1000;
const EPOCH = RETAINED_EPOCHS + 100;
const state = {
  ...NEW_KEY,
  highest: { slot: SLOT, sourceEpoch: EPOCH - 1, targetEpoch: EPOCH },
  lowWater: { slot: 5, sourceEpoch: 1, targetEpoch: 2 },
};
const signingRoot = null;

it('entries behind the horizon are left out, and the marks rise as when they are pruned', () => {
  const kept = keptEntries(state);
  for (const slot of [5, 999, 1000, SLOT]) kept.block({ slot, signingRoot });
  for (const targetEpoch of [2, 99, 100, EPOCH]) kept.vote({ sourceEpoch: targetEpoch - 1, targetEpoch, signingRoot });
  kept.vote({ sourceEpoch: 120, targetEpoch: 50, signingRoot });
  const { state: after, history } = kept.result();
  expect(history.blocks.map(({ slot }) => slot)).toEqual([1000, SLOT]);
  expect(history.attestations.map(({ targetEpoch }) => targetEpoch)).toEqual([100, EPOCH]);
  expect(after.lowWater).toEqual({ slot: 1000, sourceEpoch: 120, targetEpoch: 100 });
  expect(after.prunedBelow).toEqual({ slot: 1000, targetEpoch: 100 });
  expect(after.highest).toEqual(state.highest);
});

it('nothing changes where nothing is left out, and a kind without entries keeps its marks', () => {
  const kept = keptEntries(state);
  kept.block({ slot: SLOT, signingRoot });
  expect(kept.result()).toEqual({ state, history: { blocks: [{ slot: SLOT, signingRoot }], attestations: [] } });
});
