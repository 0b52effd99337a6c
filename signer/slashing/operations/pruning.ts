// Pruning of a complete store: oldest first, a few keys a transaction, and at most so many entries a step. A key whose
// rows fail their check is left as it is: its requests are refused until it is repaired.

import { SignerError } from '../../api/errors.ts';
import { withoutEntry } from '../history/codes.ts';
import { type EntrySet, highestOf, type KeyState } from '../history/head.ts';
import { forget, horizonOf } from '../history/prune.ts';
import { type CompleteStore, inSnapshot, isDamaged, NO_KEY, type OldestEntries, type WritableRows } from './store.ts';

const PRUNED_PAGE_KEYS = 1000;
export const PRUNED_AT_ONCE = 8;

export interface PruneCursor {
  /** Where the next page of keys begins. */
  after: Uint8Array;
  found: readonly Uint8Array[];
}

export const newPruneCursor = (): PruneCursor => ({ after: NO_KEY, found: [] });

/** A step that deletes nothing has looked at every key. */
export async function pruneStep(store: CompleteStore, cursor: PruneCursor, maxEntries: number): Promise<number> {
  let deleted = 0;
  for (let rounds = cursor.after === NO_KEY ? 1 : 2; deleted < maxEntries; ) {
    const some = cursor.found.slice(0, PRUNED_AT_ONCE);
    if (some.length > 0) {
      // The cursor goes on also when the step fails, so that keys whose rows it cannot read hold no other key up.
      cursor.found = cursor.found.slice(PRUNED_AT_ONCE);
      const step = await store.transaction((rows) => pruneKeys(rows, some, maxEntries - deleted));
      deleted += step.deleted;
      cursor.found = [...some.slice(step.keys), ...cursor.found];
      await store.turn();
      if (step.keys < some.length) return deleted;
    } else if (rounds > 0) {
      const isLast = await findPrunable(store, cursor);
      if (isLast) rounds = deleted > 0 ? 0 : rounds - 1;
    } else return deleted;
  }
  return deleted;
}

async function findPrunable(store: CompleteStore, cursor: PruneCursor): Promise<boolean> {
  const { keys, last } = await inSnapshot(store, (rows) => rows.keysAfter(cursor.after, PRUNED_PAGE_KEYS, 'prunable'));
  cursor.found = keys;
  cursor.after = last ?? NO_KEY;
  await store.turn(PRUNED_PAGE_KEYS);
  return last === undefined;
}

async function pruneKeys(
  rows: WritableRows,
  publicKeys: readonly Uint8Array[],
  maxEntries: number,
): Promise<{ readonly keys: number; readonly deleted: number }> {
  const found = await Promise.all(publicKeys.map((key) => readKey(rows, key, maxEntries)));
  let deleted = 0;
  for (const [keys, key] of found.entries()) {
    if (key === undefined) continue;
    const { head, oldest, state } = key;
    const { blocks, attestations } = oldest;
    const count = blocks.length + attestations.length;
    if (deleted + count > maxEntries) return { keys, deleted };
    if (count > 0) await rows.change(head, { state, removed: { blocks, attestations } });
    deleted += count;
  }
  return { keys: publicKeys.length, deleted };
}

async function readKey(rows: WritableRows, publicKey: Uint8Array, limit: number) {
  try {
    const [head] = await rows.heads([publicKey]);
    if (head === undefined) return undefined;
    const oldest = await rows.oldest(head, horizonOf(head.state.highest), limit);
    return { head, oldest, state: stateWithout(head.state, oldest) };
  } catch (error) {
    if (isDamaged(error)) return undefined;
    throw error;
  }
}

function stateWithout(state: KeyState, { blocks, attestations, lowestKept }: OldestEntries): KeyState {
  // The entry at the highest mark always stays, so a key with a mark has an entry.
  if (
    (lowestKept.slot === null && state.highest.slot !== null) ||
    (lowestKept.targetEpoch === null && state.highest.targetEpoch !== null)
  ) {
    throw new SignerError('slashing_integrity');
  }
  return {
    ...state,
    ...forget(state, highestOf({ blocks, attestations }), lowestKept),
    blocks: without(state.blocks, blocks),
    attestations: without(state.attestations, attestations),
  };
}

function without(set: EntrySet, old: readonly Parameters<typeof withoutEntry>[1][]): EntrySet {
  if (old.length > 0 && old.length >= set.count) throw new SignerError('slashing_integrity');
  return old.reduce(withoutEntry, set);
}
