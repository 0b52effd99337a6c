// Reads histories out from one state of the store, each shown to be whole. What pruning would forget next is not
// written.
//
// A reader of the file takes its marks from the lowest entries, and must refuse everything that this store refuses.
// Where the entries alone would allow more, the file gets entries without a root.

import { SignerError } from '../../api/errors.ts';
import { chunks } from '../../parallel.ts';
import { higher, higherMarks, type KeyState } from '../history/head.ts';
import { keptEntries } from '../history/prune.ts';
import { KEPT_ENTRIES } from '../interchange/reduce.ts';
import type { BlockEntry, KeyHistory, PublicKeyHex, StoreFloor, ValidatorHistory, VoteEntry } from '../types.ts';
import {
  allKeys,
  type CompleteStore,
  HEADS_ARE_GONE,
  type Head,
  keyHex,
  PAGE_KEYS,
  type Rows,
  sortedKeys,
} from './store.ts';

/** @throws SignerError slashing_integrity at the first key whose record fails, and when keys are gone */
export async function* exportHistories(
  store: CompleteStore,
  publicKeys: readonly PublicKeyHex[] | undefined,
): AsyncGenerator<ValidatorHistory> {
  const rows = await store.snapshot();
  try {
    const { floor } = await rows.record();
    const isWhole = await rows.isKeyListWhole();
    if (publicKeys === undefined && !isWhole) throw new SignerError('slashing_integrity', { hint: HEADS_ARE_GONE });
    const asked = publicKeys === undefined ? allKeys(rows.keysAfter) : chunks(sortedKeys(publicKeys), PAGE_KEYS);
    for await (const page of asked) {
      const heads = new Map((await rows.heads(page)).map((head) => [keyHex(head.publicKey), head]));
      for (const publicKey of page.map(keyHex)) {
        const head = heads.get(publicKey);
        if (head === undefined && !isWhole) throw new SignerError('slashing_integrity', { hint: HEADS_ARE_GONE });
        const said = head === undefined ? floor && historyOfFloor(floor) : await historyOf(rows, head, floor);
        const entries = (said?.blocks.length ?? 0) + (said?.attestations.length ?? 0);
        if (said !== null && entries > 0) yield { publicKey, ...said };
        await store.turn(1 + entries);
      }
    }
  } finally {
    await rows.close();
  }
}

async function historyOf(rows: Rows, head: Head, floor: StoreFloor | null): Promise<KeyHistory> {
  const kept = keptEntries(head.state);
  await rows.history(head, kept);
  const { state, history } = kept.result();
  // Votes that contradict each other in such numbers say no more than the marks.
  const isLong = history.attestations.length > 4 * KEPT_ENTRIES;
  const said = isLong ? { ...history, attestations: [] } : history;
  return { blocks: exportedBlocks(state, floor, said), attestations: exportedVotes(state, floor, said) };
}

/** Of a key without entries, because of the store's floor. */
export function historyOfFloor({ slot, sourceEpoch, targetEpoch }: StoreFloor): KeyHistory {
  return { blocks: [{ slot, signingRoot: null }], attestations: [{ sourceEpoch, targetEpoch, signingRoot: null }] };
}

/** Blocks below the mark say nothing more; where none is left, an entry at the mark says it. */
function exportedBlocks(state: KeyState, floor: StoreFloor | null, { blocks }: KeyHistory): readonly BlockEntry[] {
  const { slot } = higherMarks(floor, state.lowWater);
  if (slot === null) return blocks;
  const above = blocks.filter((block) => block.slot >= slot);
  return above.length > 0 ? above : [{ slot, signingRoot: null }];
}

/** Where some vote lies below the marks, one vote without a root at the highest epochs says more than all of them. */
function exportedVotes(state: KeyState, floor: StoreFloor | null, { attestations }: KeyHistory): readonly VoteEntry[] {
  const { sourceEpoch, targetEpoch } = higherMarks(floor, state.lowWater);
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
