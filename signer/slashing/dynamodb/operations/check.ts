// Check and record one message by compare-and-swap: what is overwritten was always checked, under any number of
// signers. A blind conditional write (`target_epoch < :t`) would accept an item whose target was lowered by hand, and
// give the damage a fresh code. For a key that only this process signs for a check is one round trip, else two.
//
// A write whose answer was lost finds its own item when it is repeated: it may be signed again.

import type { Log } from '../../../../common/observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import { isEndedTenure } from '../../../tenure.ts';
import type { RowIntegrity } from '../../history/codes.ts';
import { NO_HISTORY } from '../../history/head.ts';
import { type Decision, decide, isRolledBack, refusedBy } from '../../history/rules.ts';
import type { Marks, PublicKeyHex, SlashableMessage, SlashingVerdict, StoreFloor } from '../../types.ts';
import {
  attestationMark,
  blockMark,
  codedItem,
  highWaterMarks,
  historyOf,
  type Mark,
  type MarkItem,
  type MarkKey,
  markPartition,
  raisedMark,
  rootOf,
} from '../tables/items.ts';
import type { Store } from '../tables/store.ts';
import { type SlashingTable, type Stored, undamaged } from '../tables/table.ts';
import type { FirstWrite } from './first-writes.ts';

/** Each failed attempt means that another signer wrote the same item in between. */
const MAX_WRITE_ATTEMPTS = 8;
/** Two items a key for 200,000 keys. */
const MAX_REMEMBERED_ITEMS = 400_000;

export function verifiedItems() {
  const items = new Map<string, MarkItem>();
  return {
    get: (key: MarkKey): MarkItem | undefined => items.get(markPartition(key)),
    /** A late answer does not replace a higher item. */
    remember(key: MarkKey, item: MarkItem): void {
      const partition = markPartition(key);
      const known = items.get(partition);
      if (known === undefined && items.size >= MAX_REMEMBERED_ITEMS) return;
      if (!isRolledBack(highWaterMarks(item.mark), highWaterMarks(known?.mark))) items.set(partition, item);
    },
  };
}

export interface StoreContext {
  readonly table: SlashingTable;
  readonly integrity: RowIntegrity;
  readonly verified: ReturnType<typeof verifiedItems>;
  readonly store: Store;
  readonly writeFirst: FirstWrite;
  readonly log: Log;
}

type FloorReader = Pick<Store, 'floor' | 'read'>;

/** @param floors known by the caller to be recorded @throws SignerError slashing_unavailable */
export async function checkAndRecordOne(
  message: SlashableMessage,
  floors: Marks,
  {
    table,
    integrity,
    verified,
    store,
    writeFirst,
  }: Omit<StoreContext, 'store' | 'log'> & { readonly store: FloorReader },
): Promise<SlashingVerdict> {
  const { kind, publicKey } = message;
  const key = { kind, publicKey };
  const mark = message.kind === 'block' ? blockMark(message) : attestationMark(message);
  const next = codedItem(key, { mark, tenure: message.tenure ?? 0, signed: undefined }, integrity);
  let expected = verified.get(key);
  const known = [relevant(floors, kind), highWaterMarks(expected?.mark)];
  let isFresh = false;

  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const { floor } = store;
    const verdict = judge(message, expected, { floor, known });
    let stored: Stored;
    // That a key has no item is never remembered, so it is asked.
    if (verdict.kind === 'safe' && !verdict.repeat && (expected !== undefined || isFresh)) {
      const isFirst = expected?.mark === undefined;
      const replacement = { key, next, expected };
      const outcome = isFirst ? await writeFirst(replacement, floor) : await table.replace(replacement);
      if (outcome.kind === 'replaced') {
        verified.remember(key, next);
        return verdict;
      }
      if (outcome.kind === 'floor_changed') continue;
      if (outcome.kind === 'rolled_back') return { kind: 'unavailable', reason: 'slashing_rollback' };
      stored = outcome.stored;
    } else {
      // Only what the table says now is an answer.
      if (isFresh && !(verdict.kind === 'unavailable' && (await hasNewFloor(store)))) return verdict;
      stored = await table.read(key);
    }
    if (stored === 'damaged') return { kind: 'unavailable', reason: 'slashing_integrity' };
    if (stored !== undefined) verified.remember(key, stored);
    expected = stored;
    isFresh = true;
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: markPartition(key) } });
}

/** Nothing is missed if another process has jumped since. */
async function hasNewFloor(store: FloorReader): Promise<boolean> {
  const { floor } = store;
  await store.read();
  return store.floor !== floor;
}

/** Nothing up to the floor is missed: a jump has raised all keys to it. `unavailable` always is a rollback. */
function judge(
  message: SlashableMessage,
  item: MarkItem | undefined,
  { floor, known }: { readonly floor: StoreFloor | null; readonly known: readonly Marks[] },
): SlashingVerdict {
  const { tenure = 0 } = message;
  if (tenure !== (item?.tenure ?? 0) || isEndedTenure(tenure)) return refusedBy('key_retired');
  const mark = floor === null ? item?.mark : raisedMark(message.kind, item?.mark, floor);
  const marks = highWaterMarks(mark);
  if (known.some((floors) => isRolledBack(marks, floors))) return { kind: 'unavailable', reason: 'slashing_rollback' };
  // A mark that was raised is of no message, so nothing at its place is a second one.
  const isOfMessage = mark === item?.mark && item?.signed === undefined;
  return decideByMark(message, mark, isOfMessage);
}

/**
 * The minimal strategy of EIP-3076: the last message is the entry, and its numbers are the low-water marks. They are
 * the highest of all entries, so they refuse what surrounds one or is surrounded by it.
 */
function decideByMark(message: SlashableMessage, mark: Mark | undefined, isOfMessage: boolean): Decision {
  const marks = highWaterMarks(mark);
  const isThere = message.kind === 'block' ? marks.slot === message.slot : marks.targetEpoch === message.targetEpoch;
  return decide(message, isOfMessage && isThere ? historyOf([mark]) : NO_HISTORY, marks);
}

function relevant(floors: Marks, kind: SlashableMessage['kind']): Marks {
  return kind === 'block' ? { slot: floors.slot, sourceEpoch: null, targetEpoch: null } : { ...floors, slot: null };
}

export async function signedBlockRoot(
  table: Pick<SlashingTable, 'read'>,
  publicKey: PublicKeyHex,
  slot: number,
): Promise<Uint8Array | null> {
  const mark = undamaged(await table.read({ kind: 'block', publicKey }), publicKey)?.mark;
  return mark?.slot === slot ? rootOf(mark) : null;
}
