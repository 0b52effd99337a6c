// Raising the items of all keys to the floor of the store, after the floor itself: every signer meets it from then on.
// A crash leaves items that refuse more, never less. A damaged item is left alone: its key is answered 503.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../api/errors.ts';
import { jittered } from '../../../aws/dynamodb.ts';
import { inParallel } from '../../../parallel.ts';
import type { RowIntegrity } from '../../history/integrity.ts';
import { higherMarks, NO_MARKS } from '../../history/rules.ts';
import type { HighWaterMarks, StoreFloor } from '../../types.ts';
import { floorMarks, highWaterMarks, type MarkItem, type MarkKey, raisedMark, sealItem } from '../tables/items.ts';
import type { ReplaceOutcome, ScannedItem, SlashingTable } from '../tables/table.ts';
import type { StoreContext } from './check.ts';

const WRITES_AT_ONCE = 64;
const MAX_WRITE_ATTEMPTS = 64;
/** Beyond the SDK's own. */
const MAX_UNANSWERED_TRIES = 3;
/** A table on demand throttles for some seconds. */
const MAX_THROTTLED_TRIES = 12;
const THROTTLED_PAUSE_MS = 50;
const MAX_THROTTLED_PAUSE_MS = 5_000;

type JumpContext = Pick<StoreContext, 'table' | 'integrity' | 'verified' | 'log'>;

/** @throws SignerError slashing_unavailable: repeat the jump */
export async function raiseItems(floor: StoreFloor, context: JumpContext): Promise<void> {
  for await (const page of context.table.scan()) {
    await inParallel(page, WRITES_AT_ONCE, (item) => raiseItem(item, floorMarks(floor), context));
  }
}

/** The highest slot and epochs that any key has signed or imported, whatever jumps have raised since. */
export async function highestMarks(table: SlashingTable): Promise<HighWaterMarks> {
  let highest = NO_MARKS;
  for await (const page of table.scan()) {
    for (const { stored } of page) {
      // A damaged item says nothing; its key signs nothing either.
      if (stored !== 'damaged') highest = higherMarks(highest, stored.signed ?? highWaterMarks(stored.mark));
    }
  }
  return highest;
}

async function raiseItem({ key, stored }: ScannedItem, floor: HighWaterMarks, context: JumpContext): Promise<void> {
  let found: ScannedItem['stored'] = stored;
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    if (found === 'damaged') return context.log.error({ public_key: key.publicKey, kind: key.kind }, DAMAGED);
    const next = raisedItem(key, found, floor, context.integrity);
    if (next === undefined) return;
    const outcome = await patient(() => context.table.replace({ key, next, expected: found as MarkItem }));
    if (outcome.kind === 'replaced') return context.verified.remember(key, next);
    // Nothing of ours deletes items; the floor of the store holds.
    if (outcome.stored === undefined) return;
    found = outcome.stored;
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: key.publicKey } });
}

/** Undefined: it lies beyond the floor, or has no mark and is judged by the floor of the store. */
function raisedItem(key: MarkKey, item: MarkItem, floor: HighWaterMarks, integrity: RowIntegrity) {
  if (item.mark === undefined) return undefined;
  const mark = raisedMark(key.kind, item.mark, floor);
  if (mark === item.mark) return undefined;
  const signed = item.signed ?? highWaterMarks(item.mark);
  return sealItem(key, { mark, signed, tenure: item.tenure }, integrity);
}

async function patient(write: () => Promise<ReplaceOutcome>): Promise<ReplaceOutcome> {
  for (let tries = 1; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (tries >= triesAfter(error instanceof SignerError ? error.detail?.['fault'] : undefined)) throw error;
      await pause(jittered(Math.min(THROTTLED_PAUSE_MS * 2 ** tries, MAX_THROTTLED_PAUSE_MS)));
    }
  }
}

function triesAfter(fault: unknown): number {
  if (fault === 'throttled') return MAX_THROTTLED_TRIES;
  return fault === 'unreachable' ? MAX_UNANSWERED_TRIES : 1;
}

const DAMAGED =
  'a slashing record fails its check and was not raised by a jump: its key is refused until it is repaired';
