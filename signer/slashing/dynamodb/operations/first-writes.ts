// The first record of a kind that a key gets is judged by the floor of the store, in one transaction with the condition
// that this floor still holds. This process has one under way at a time, for they get in each other's way.

import { setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../../../common/flow/backoff.ts';
import { SignerError } from '../../../api/errors.ts';
import type { StoreFloor } from '../../types.ts';
import { markPartition } from '../tables/items.ts';
import type { Store } from '../tables/store.ts';
import { MAX_BATCH_ITEMS, type Replacement, type ReplaceOutcome, type SlashingTable } from '../tables/table.ts';

const MAX_TRIES = 12;
const CONFLICT_PAUSE_MS = 5;

/** `floor_changed`: judge again. `rolled_back`: the record holds less than this process has read of it before. */
type FirstOutcome = ReplaceOutcome | { readonly kind: 'floor_changed' } | { readonly kind: 'rolled_back' };

/** `floor`: what the write was judged by, as `store.floor` gave it. @throws SignerError */
export type FirstWrite = (replacement: Replacement, floor: StoreFloor | null) => Promise<FirstOutcome>;

interface WaitingFirst extends Pick<PromiseWithResolvers<FirstOutcome>, 'resolve' | 'reject'> {
  readonly replacement: Replacement;
  readonly floor: StoreFloor | null;
  readonly tries: number;
}

export function firstWrites(table: Pick<SlashingTable, 'replaceTogether'>, store: Store): FirstWrite {
  let waiting: WaitingFirst[] = [];
  let isUnderWay = false;

  async function sendAll(): Promise<void> {
    isUnderWay = true;
    // What starts together goes together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const room = MAX_BATCH_ITEMS - 1; // and the guard
      const { taken, left } = takeDistinct(waiting, room);
      waiting = left;
      await send(taken).catch((error: unknown) => {
        for (const { reject } of taken) reject(error);
      });
    }
    isUnderWay = false;
  }

  async function send(taken: readonly WaitingFirst[]): Promise<void> {
    const { floor } = store;
    const writes = taken.filter((write) => write.floor === floor);
    for (const write of taken) if (write.floor !== floor) write.resolve({ kind: 'floor_changed' });
    if (writes.length === 0) return;
    const replacements = writes.map(({ replacement }) => replacement);
    const outcome = await table.replaceTogether(replacements, store.isStillBound());
    if (outcome.kind === 'replaced') {
      for (const { resolve } of writes) resolve({ kind: 'replaced' });
    } else if (outcome.kind === 'conflict') {
      await pause(jittered(CONFLICT_PAUSE_MS * (writes[0]?.tries ?? 1)));
      again(writes);
    } else if (outcome.isGuardBroken) {
      await store.read();
      store.assertUsable();
      // The known floor is the highest of all that were read.
      const kind = store.floor === floor ? 'rolled_back' : 'floor_changed';
      for (const { resolve } of writes) resolve({ kind });
    } else {
      again(writes.filter((_, index) => outcome.stored[index] === 'as_expected'));
      for (const [index, { resolve }] of writes.entries()) {
        const stored = outcome.stored[index];
        if (stored !== 'as_expected') resolve({ kind: 'changed', stored });
      }
    }
  }

  function again(writes: readonly WaitingFirst[]): void {
    for (const write of writes) {
      if (write.tries < MAX_TRIES) waiting.push({ ...write, tries: write.tries + 1 });
      else
        write.reject(
          new SignerError('slashing_unavailable', { detail: { contended: markPartition(write.replacement.key) } }),
        );
    }
  }

  return (replacement, floor) =>
    new Promise<FirstOutcome>((resolve, reject) => {
      waiting.push({ replacement, floor, tries: 1, resolve, reject });
      if (!isUnderWay) void sendAll();
    });
}

/** No item twice: the later write of an item waits, and finds what the earlier one left. */
export function takeDistinct<Write extends { readonly replacement: Replacement }>(
  waiting: readonly Write[],
  most: number,
) {
  const partitions = new Set<string>();
  const [taken, left]: [Write[], Write[]] = [[], []];
  for (const one of waiting) {
    const partition = markPartition(one.replacement.key);
    const goes = taken.length < most && !partitions.has(partition);
    (goes ? taken : left).push(one);
    if (goes) partitions.add(partition);
  }
  return { taken, left };
}
