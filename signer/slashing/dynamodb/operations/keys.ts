// What changes the items of keys besides checks and imports. The tenure of a key stands in both items, written in one
// transaction; every check compares one of the two. A jump raises the items of all keys, after the floor of the store.

import { setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../../../common/flow/backoff.ts';
import { SignerError } from '../../../api/errors.ts';
import { chunks, inParallel } from '../../../parallel.ts';
import { begun, ended, isEndedTenure, type Tenures } from '../../../tenure.ts';
import { higherMarks, NO_MARKS } from '../../history/head.ts';
import { isRolledBack } from '../../history/rules.ts';
import type { KeyMarks, Marks, PublicKeyHex, StoreFloor } from '../../types.ts';
import {
  codedItem,
  highWaterMarks,
  isSameMark,
  type MarkContent,
  type MarkItem,
  type MarkKey,
  markKeysOf,
  raisedMark,
  unknownMark,
} from '../tables/items.ts';
import type { DynamoStoreRecord } from '../tables/record.ts';
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
    for (const some of chunks([...new Set(publicKeys)].flatMap(markKeysOf), MAX_BATCH_ITEMS)) {
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
    const tenure = await changeKey(publicKey, context, (present) => {
      const tenure = next(present, publicKey);
      return tenure === present ? undefined : (_, { mark, signed }) => ({ mark, signed, tenure });
    });
    if (tenure !== undefined) moved.set(publicKey, tenure);
  });
  return moved;
}

/** By both items of a key, which is in no open tenure. */
export async function startAfresh(publicKey: PublicKeyHex, floor: StoreFloor, context: StoreContext): Promise<boolean> {
  const changed = await changeKey(publicKey, context, (tenure) =>
    isEndedTenure(tenure)
      ? ({ kind }) => ({ mark: raisedMark(kind, undefined, floor), signed: undefined, tenure })
      : undefined,
  );
  return changed !== undefined;
}

/** What becomes of each item of a key. */
type NextItem = (key: MarkKey, item: Partial<MarkContent>) => MarkContent;

/**
 * Both items of the key in one transaction. @param next undefined: the key stays as it is
 * @returns the tenure that they have now; undefined when nothing is changed
 * @throws SignerError slashing_unavailable (it may be done)
 */
async function changeKey(
  publicKey: PublicKeyHex,
  { table, integrity, verified }: StoreContext,
  next: (tenure: number) => NextItem | undefined,
): Promise<number | undefined> {
  const keys = markKeysOf(publicKey);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const items = (await table.readMany(keys)).map((stored) => undamaged(stored, publicKey));
    const contentOf = next(Math.max(...items.map((item) => item?.tenure ?? 0)));
    if (contentOf === undefined) return undefined;
    const replacements = keys.map((key, index): Replacement => {
      const expected = items[index];
      return { key, expected, next: codedItem(key, contentOf(key, expected ?? {}), integrity) };
    });
    const outcome = await table.replaceTogether(replacements);
    if (outcome.kind === 'replaced') {
      for (const { key, next: item } of replacements) verified.remember(key, item);
      return replacements[0]?.next.tenure;
    }
    await pause(jittered(CONFLICT_PAUSE_MS * attempt));
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: publicKey } });
}

export async function marksBeyond(
  table: SlashingTable,
  floor: StoreFloor,
  publicKeys?: readonly PublicKeyHex[],
): Promise<KeyMarks> {
  const marks = new Map<PublicKeyHex, Marks>();
  const wanted = publicKeys && new Set(publicKeys);
  for await (const page of table.scan()) {
    for (const { key, stored } of page) {
      if (stored === 'damaged' || wanted?.has(key.publicKey) === false) continue;
      const own = stored.signed ?? highWaterMarks(stored.mark);
      if (!isRolledBack(floor, own)) continue;
      marks.set(key.publicKey, higherMarks(marks.get(key.publicKey) ?? NO_MARKS, own));
    }
  }
  return marks;
}

// A jump that a crash ends leaves items that refuse more, never less. A damaged item is left alone: its key gets 503.

const WRITES_AT_ONCE = 64;
/** Beyond the SDK's own. */
const MAX_UNANSWERED_TRIES = 3;
/** A table on demand throttles for some seconds. */
const MAX_THROTTLED_TRIES = 12;
const THROTTLED_PAUSE_MS = 50;
const MAX_THROTTLED_PAUSE_MS = 5_000;

/** Undefined: the item stays as it is. */
type NextContent = (item: ScannedItem & { readonly stored: MarkItem }) => MarkContent | undefined;

/** @throws SignerError slashing_unavailable: repeat the jump */
export async function moveItems(next: NextContent, context: StoreContext): Promise<void> {
  for await (const page of context.table.scan()) {
    await inParallel(page, WRITES_AT_ONCE, (item) => moveItem(item, next, context));
  }
}

async function moveItem({ key, stored }: ScannedItem, next: NextContent, context: StoreContext): Promise<void> {
  let found: ScannedItem['stored'] = stored;
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    if (found === 'damaged') return context.log.error({ public_key: key.publicKey, kind: key.kind }, DAMAGED);
    const content = next({ key, stored: found });
    if (content === undefined) return;
    const coded = codedItem(key, content, context.integrity);
    const outcome = await patient(() => context.table.replace({ key, next: coded, expected: found as MarkItem }));
    if (outcome.kind === 'replaced') return context.verified.remember(key, coded);
    // Nothing of ours deletes items; the floor of the store holds.
    if (outcome.stored === undefined) return;
    found = outcome.stored;
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: key.publicKey } });
}

/** One that lies beyond the floor stays, and one that has no mark and is judged by the floor of the store. */
export function raisedItem(
  { key, stored: item }: Parameters<NextContent>[0],
  floor: StoreFloor,
): ReturnType<NextContent> {
  if (item.mark === undefined) return undefined;
  const mark = raisedMark(key.kind, item.mark, floor);
  if (mark === item.mark) return undefined;
  return { mark, signed: item.signed ?? highWaterMarks(item.mark), tenure: item.tenure };
}

/** The items first, so that a crash refuses more. No item falls below what its key has signed or imported. */
export async function lowered(floor: StoreFloor, context: StoreContext): Promise<DynamoStoreRecord> {
  await moveItems(({ key, stored: { signed, tenure, mark: before } }) => {
    if (signed === undefined) return undefined;
    const mark = raisedMark(key.kind, unknownMark(key.kind, signed), floor);
    if (mark !== undefined && before !== undefined && isSameMark(mark, before)) return undefined;
    return { mark, signed, tenure };
  }, context);
  return context.store.lower(floor);
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
