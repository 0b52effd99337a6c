// What changes the items of keys besides checks and imports. The tenure of a key stands in both items, written in one
// transaction; every check compares one of the two. A jump raises the items of all keys, after the floor of the store.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../api/errors.ts';
import { jittered } from '../../../aws/dynamodb.ts';
import { chunks, inParallel } from '../../../parallel.ts';
import { begun, ended, type Tenures } from '../../../tenure.ts';
import type { RowIntegrity } from '../../history/codes.ts';
import { floorMarks, higherMarks, NO_MARKS } from '../../history/rules.ts';
import type { HighWaterMarks, PublicKeyHex, StoreFloor } from '../../types.ts';
import { highWaterMarks, MARK_KINDS, type MarkItem, type MarkKey, raisedMark, sealItem } from '../tables/items.ts';
import {
  MAX_BATCH_ITEMS,
  type Replacement,
  type ReplaceOutcome,
  type ScannedItem,
  type SlashingTable,
  type Stored,
  undamaged,
} from '../tables/table.ts';
import type { StoreContext } from './check.ts';

const MAX_WRITE_ATTEMPTS = 64;
const CONFLICT_PAUSE_MS = 5;
const KEYS_AT_ONCE = 16;

export async function endTenures(publicKeys: readonly PublicKeyHex[], context: StoreContext): Promise<Tenures> {
  return moveAll(publicKeys, ended, context);
}

export async function beginTenures(from: Tenures, context: StoreContext): Promise<Tenures> {
  const next = (tenure: number, publicKey: PublicKeyHex): number =>
    tenure === from.get(publicKey) ? begun(tenure) : tenure;
  return moveAll([...from.keys()], next, context);
}

export async function readTenures(table: SlashingTable, publicKeys?: readonly PublicKeyHex[]): Promise<Tenures> {
  const tenures = new Map<PublicKeyHex, number>();
  const look = ({ publicKey }: MarkKey, stored: Stored) => {
    const { tenure = 0 } = undamaged(stored, publicKey) ?? {};
    // Between two reads of a key's items the higher number is the later one.
    if (tenure > (tenures.get(publicKey) ?? 0)) tenures.set(publicKey, tenure);
  };
  if (publicKeys === undefined) {
    for await (const page of table.scan('with_tenure')) for (const { key, stored } of page) look(key, stored);
  } else {
    for (const some of chunks([...new Set(publicKeys)].flatMap(keysOf), MAX_BATCH_ITEMS)) {
      const stored = await table.readMany(some);
      for (const [index, key] of some.entries()) look(key, stored[index]);
    }
  }
  return tenures;
}

type NextTenure = (tenure: number, publicKey: PublicKeyHex) => number;

async function moveAll(publicKeys: readonly PublicKeyHex[], next: NextTenure, context: StoreContext): Promise<Tenures> {
  const moved = new Map<PublicKeyHex, number>();
  await inParallel([...new Set(publicKeys)], KEYS_AT_ONCE, async (publicKey) => {
    const tenure = await move(publicKey, next, context);
    if (tenure !== undefined) moved.set(publicKey, tenure);
  });
  return moved;
}

/** @returns undefined when `next` changes nothing @throws SignerError slashing_unavailable (it may be done) */
async function move(
  publicKey: PublicKeyHex,
  next: NextTenure,
  { table, integrity, verified }: StoreContext,
): Promise<number | undefined> {
  const keys = keysOf(publicKey);
  let items = (await table.readMany(keys)).map((stored) => undamaged(stored, publicKey));
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const present = Math.max(...items.map((item) => item?.tenure ?? 0));
    const tenure = next(present, publicKey);
    if (tenure === present) return undefined;
    const replacements = keys.map((key, index): Replacement => {
      const expected = items[index];
      const content = { mark: expected?.mark, signed: expected?.signed, tenure };
      return { key, expected, next: sealItem(key, content, integrity) };
    });
    const outcome = await table.replaceTogether(replacements);
    if (outcome.kind === 'replaced') {
      for (const { key, next: item } of replacements) verified.remember(key, item);
      return tenure;
    }
    if (outcome.kind === 'conflict') await pause(jittered(CONFLICT_PAUSE_MS * attempt));
    else {
      const { stored } = outcome;
      items = items.map((item, index) =>
        stored[index] === 'as_expected' ? item : undamaged(stored[index], publicKey),
      );
    }
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: publicKey } });
}

function keysOf(publicKey: PublicKeyHex): MarkKey[] {
  return MARK_KINDS.map((kind) => ({ kind, publicKey }));
}

// A jump that a crash ends leaves items that refuse more, never less. A damaged item is left alone: its key gets 503.

const WRITES_AT_ONCE = 64;
/** Beyond the SDK's own. */
const MAX_UNANSWERED_TRIES = 3;
/** A table on demand throttles for some seconds. */
const MAX_THROTTLED_TRIES = 12;
const THROTTLED_PAUSE_MS = 50;
const MAX_THROTTLED_PAUSE_MS = 5_000;

/** @throws SignerError slashing_unavailable: repeat the jump */
export async function raiseItems(floor: StoreFloor, context: StoreContext): Promise<void> {
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

async function raiseItem({ key, stored }: ScannedItem, floor: HighWaterMarks, context: StoreContext): Promise<void> {
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
