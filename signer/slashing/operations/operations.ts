// What every complete store does in the same way, over its rows. A tenure is a number in the head of its key: a head is
// locked as a check locks it, so a check that began is over before the tenure ends, and later ones are refused.

import { SignerError } from '../../api/errors.ts';
import { chunks } from '../../parallel.ts';
import { begun, ended, isEndedTenure } from '../../tenure.ts';
import { higherMarks, NEW_KEY, NO_HISTORY } from '../history/head.ts';
import { codedHistory, mergeKey } from '../history/merge.ts';
import { isRolledBack } from '../history/rules.ts';
import { lowerOf } from '../jump.ts';
import type { Marks, PublicKeyHex, SlashingBackend } from '../types.ts';
import { historyOfFloor } from './export.ts';
import { newPruneCursor, type PruneCursor, pruneStep } from './pruning.ts';
import {
  allKeys,
  type CompleteStore,
  HEADS_ARE_GONE,
  type Head,
  historyCollector,
  inSnapshot,
  isDamaged,
  keyBytes,
  keyHex,
  PAGE_KEYS,
  type Rows,
  sortedKeys,
} from './store.ts';

const OPERATIONS = [
  ...(['identity', 'incarnate', 'jump', 'signedBlockRoot'] as const),
  ...(['tenures', 'endTenures', 'beginTenures', 'pruneStep', 'marksBeyond', 'startAfresh'] as const),
];
export type StoreOperations = Pick<SlashingBackend, (typeof OPERATIONS)[number]>;

/** Each handed on, to a store on a connection or in another thread. `given` are the arguments of the operation. */
export function operationsThrough(
  call: (name: keyof StoreOperations, given: [never, never]) => unknown,
): StoreOperations {
  const methods = OPERATIONS.map((name) => [name, (...given: [never, never]) => call(name, given)]);
  return Object.fromEntries(methods) as unknown as StoreOperations;
}

/** `pruned`: for a store that is made for each operation. */
export function storeOperations(store: CompleteStore, pruned: PruneCursor = newPruneCursor()): StoreOperations {
  return {
    identity: () => inSnapshot(store, (rows) => rows.record()),

    async incarnate(expected, next) {
      const after = await store.changeRecord(
        (before) => (before.incarnation === expected ? { ...before, incarnation: next } : before),
        false,
      );
      return after.incarnation === next;
    },

    jump: (floor, lowers = false) =>
      store.changeRecord(
        (before) => ({ ...before, floor: (lowers ? lowerOf : higherMarks)(before.floor, floor) }),
        true,
      ),

    signedBlockRoot: (publicKey, slot) =>
      inSnapshot(store, async (rows) => {
        const [head] = await rows.heads([keyBytes(publicKey)]);
        return (head && (await rows.blockAt(head, slot)))?.signingRoot ?? null;
      }),

    async tenures(publicKeys, leavesOutDamaged = false) {
      const tenures = new Map<PublicKeyHex, number>();
      for await (const heads of pagesOfHeads(store, publicKeys, leavesOutDamaged ? undamagedHeads : allHeads)) {
        for (const { publicKey, state } of heads) {
          if (state.tenure !== NEW_KEY.tenure) tenures.set(keyHex(publicKey), state.tenure);
        }
      }
      return tenures;
    },

    async endTenures(publicKeys) {
      const tenures = new Map<PublicKeyHex, number>();
      for (const page of pagesOf(publicKeys)) {
        await store.addKeys(page);
        if ((await moveTenures(store, page, tenures, ended)) === page.length) continue;
        throw new SignerError('slashing_integrity', { hint: HEADS_ARE_GONE });
      }
      return tenures;
    },

    async beginTenures(from) {
      const tenures = new Map<PublicKeyHex, number>();
      for (const page of pagesOf([...from.keys()])) {
        await moveTenures(store, page, tenures, (tenure, publicKey) =>
          tenure === from.get(publicKey) && isEndedTenure(tenure) ? begun(tenure) : undefined,
        );
      }
      return tenures;
    },

    async marksBeyond(floor, publicKeys) {
      const marks = new Map<PublicKeyHex, Marks>();
      for await (const heads of pagesOfHeads(store, publicKeys, undamagedHeads)) {
        for (const { publicKey, state } of heads) {
          const own = higherMarks(state.lowWater, state.highest);
          if (isRolledBack(floor, own)) marks.set(keyHex(publicKey), own);
        }
      }
      return marks;
    },

    startAfresh: (publicKey, floor) =>
      store.transaction(async (rows) => {
        const [head] = await rows.heads([keyBytes(publicKey)]);
        if (head === undefined || !isEndedTenure(head.state.tenure)) return false;
        const { history, sink } = historyCollector();
        await rows.history(head, sink);
        const key = { publicKey: head.publicKey, recorded: NO_HISTORY, floor: null };
        const state = { ...NEW_KEY, tenure: head.state.tenure };
        const fresh = mergeKey({ ...key, state }, historyOfFloor(floor), 'minimal', store.codes);
        const removed = codedHistory(store.codes, head.publicKey, history);
        await rows.change(head, { state: fresh.state, added: fresh.added, removed });
        return true;
      }),

    pruneStep: (maxEntries) => pruneStep(store, pruned, maxEntries),
  };
}

/**
 * Each page of one state; of all keys unless some are given. Every head that is asked for is verified: an ended tenure
 * may not hide by a change of its row.
 */
async function* pagesOfHeads(
  store: CompleteStore,
  publicKeys: readonly PublicKeyHex[] | undefined,
  headsOf: typeof allHeads,
): AsyncGenerator<readonly Head[]> {
  const keysAfter: Rows['keysAfter'] = (...asked) => inSnapshot(store, (rows) => rows.keysAfter(...asked));
  for await (const page of publicKeys === undefined ? allKeys(keysAfter) : pagesOf(publicKeys)) {
    yield await inSnapshot(store, (rows) => headsOf(rows, page));
    await store.turn(page.length);
  }
}

const allHeads = (rows: Rows, publicKeys: readonly Uint8Array[]): Promise<Head[]> => rows.heads(publicKeys);

/** A key whose head is damaged is left out: no check of it passes, and the others go on. */
async function undamagedHeads(rows: Rows, publicKeys: readonly Uint8Array[]): Promise<Head[]> {
  try {
    return await rows.heads(publicKeys);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    if (publicKeys.length === 1) return [];
    const heads: Head[] = [];
    for (const publicKey of publicKeys) heads.push(...(await undamagedHeads(rows, [publicKey])));
    return heads;
  }
}

/** Each head to the tenure that `next` says, if it says one; noted once they are durable. Resolves with how many. */
async function moveTenures(
  store: CompleteStore,
  publicKeys: readonly Uint8Array[],
  tenures: Map<PublicKeyHex, number>,
  next: (tenure: number, publicKey: PublicKeyHex) => number | undefined,
): Promise<number> {
  const moved = await store.transaction(async (rows) => {
    const heads = await rows.heads(publicKeys);
    const changes = heads.flatMap((head) => {
      const tenure = next(head.state.tenure, keyHex(head.publicKey));
      return tenure === undefined ? [] : [{ head, state: { ...head.state, tenure } }];
    });
    await Promise.all(changes.map(({ head, state }) => rows.change(head, { state })));
    return changes;
  });
  for (const { head, state } of moved) tenures.set(keyHex(head.publicKey), state.tenure);
  await store.turn(publicKeys.length);
  return moved.length;
}

function pagesOf(publicKeys: readonly PublicKeyHex[]): (readonly Uint8Array[])[] {
  return chunks(sortedKeys(publicKeys), PAGE_KEYS);
}
