// What a file adds to the records of a key: the corners that a store's contract meets only by chance.

import { describe, expect, it } from 'vitest';
import { BLOCKS, entrySum, historyCodes, rowIntegrity, VOTES } from '../../../signer/slashing/history/codes.ts';
import { type EntrySet, type KeyState, NEW_KEY } from '../../../signer/slashing/history/head.ts';
import { mergeKey } from '../../../signer/slashing/history/merge.ts';
import type { KeyHistory, StoreFloor } from '../../../signer/slashing/types.ts';
import { history, rootOf } from '../../support/slashing.ts';

function isWholeSet(set: EntrySet, elements: readonly Uint8Array[]): boolean {
  const sum = entrySum();
  for (const element of elements) sum.add(element);
  return sum.isWhole(set);
}

const publicKey = new Uint8Array(48).fill(3);
const codes = historyCodes(rowIntegrity({ genesisValidatorsRoot: new Uint8Array(32) }));
const NOTHING: KeyHistory = { blocks: [], attestations: [] };
type Given = Parameters<typeof history>;

function merged(
  {
    state = NEW_KEY,
    recorded = NOTHING,
    floor = null,
  }: Partial<{ state: KeyState; recorded: KeyHistory; floor: StoreFloor | null }>,
  blocks: Given[1],
  attestations: Given[2],
) {
  return mergeKey({ publicKey, state, recorded, floor }, history(1, blocks, attestations), 'complete', codes);
}

/** A key whose file was merged, with the entries that it has then. */
function recordedKey(blocks: Given[1], attestations: Given[2]) {
  const { state, added } = merged({}, blocks, attestations);
  return { state, recorded: added };
}

describe('a merge', () => {
  it('at or below the floor of the store takes the roots away: what was refused is no repeat now', () => {
    const floor = { slot: 100, sourceEpoch: 10, targetEpoch: 11 };
    const { added } = merged(
      { floor },
      [
        [100, 'a'],
        [101, 'b'],
      ],
      [
        [9, 20, 'a'],
        [10, 11, 'b'],
        [20, 21, 'c'],
      ],
    );
    expect(added.blocks.map(({ signingRoot }) => signingRoot)).toEqual([null, rootOf('b')]);
    expect(added.attestations.map(({ signingRoot }) => signingRoot)).toEqual([null, null, rootOf('c')]);
  });

  it('of a history whose reader left entries out takes the roots up to their marks away', () => {
    const file = history(1, [[900, 'a']], []);
    const vote = { sourceEpoch: 3, targetEpoch: 900, signingRoot: rootOf('a') };
    const leftOut = { slot: null, sourceEpoch: 4, targetEpoch: 5, blocks: 0, attestations: 1 };
    const key = { publicKey, state: NEW_KEY, recorded: NOTHING, floor: null };
    const { added, state } = mergeKey(key, { ...file, attestations: [vote], leftOut }, 'by_key', codes);
    expect(added.attestations[0]?.signingRoot).toBeNull(); // it surrounds what was left out
    expect(added.blocks[0]?.signingRoot).toEqual(rootOf('a'));
    expect(state.lowWater).toEqual({ slot: 900, sourceEpoch: 4, targetEpoch: 900 });
  });

  it('of a second vote for a target takes the root of the recorded one away too', () => {
    const key = recordedKey(
      [],
      [
        [1, 2, 'a'],
        [2, 4, 'a'],
      ],
    );
    const { contradicted, added, state } = merged(
      key,
      [],
      [
        [1, 4, 'b'],
        [1, 2, 'a'],
      ],
    );
    expect(contradicted.attestations).toMatchObject([{ sourceEpoch: 2, targetEpoch: 4, signingRoot: null }]);
    expect(added.attestations).toMatchObject([{ sourceEpoch: 1, targetEpoch: 4, signingRoot: null }]);
    const votes = [
      ...key.recorded.attestations.filter(({ targetEpoch }) => targetEpoch === 2),
      ...contradicted.attestations,
      ...added.attestations,
    ];
    const elements = votes.map((vote) => codes.entry(VOTES, publicKey, vote).element);
    expect(isWholeSet(state.attestations, elements)).toBe(true);
    expect(isWholeSet(state.attestations, elements.slice(1))).toBe(false);
    const again = merged({ state, recorded: { blocks: [], attestations: votes } }, [], [[1, 4, 'b']]);
    expect(again.contradicted.attestations).toEqual([]);
  });
});

it('a sum of entries, read one by one, is whole exactly when the set is', () => {
  const { state, recorded } = recordedKey(
    [
      [1, 'a'],
      [2, 'b'],
      [3, null],
    ],
    [],
  );
  const sum = entrySum();
  for (const block of recorded.blocks) {
    expect(sum.isWhole(state.blocks)).toBe(false);
    sum.add(codes.entry(BLOCKS, publicKey, block).element);
  }
  expect(sum.isWhole(state.blocks)).toBe(true);
  expect(sum.set()).toEqual(state.blocks);
});
