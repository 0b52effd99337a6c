// The tenures of keys. The number stands in both items of a key, written in one transaction; every check compares one
// of the two.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../api/errors.ts';
import { jittered } from '../../../aws/dynamodb.ts';
import { chunks, inParallel } from '../../../parallel.ts';
import { begun, ended, type Tenures } from '../../../tenure.ts';
import type { PublicKeyHex } from '../../types.ts';
import { MARK_KINDS, type MarkItem, type MarkKey, sealItem } from '../tables/items.ts';
import { MAX_BATCH_ITEMS, type Replacement, type SlashingTable, type Stored, undamaged } from '../tables/table.ts';
import type { StoreContext } from './check.ts';

const MAX_WRITE_ATTEMPTS = 64;
const CONFLICT_PAUSE_MS = 5;
const KEYS_AT_ONCE = 16;

type TenureContext = Pick<StoreContext, 'table' | 'integrity' | 'verified'>;

export async function endTenures(publicKeys: readonly PublicKeyHex[], context: TenureContext): Promise<Tenures> {
  return moveAll(publicKeys, ended, context);
}

export async function beginTenures(from: Tenures, context: TenureContext): Promise<Tenures> {
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

async function moveAll(
  publicKeys: readonly PublicKeyHex[],
  next: NextTenure,
  context: TenureContext,
): Promise<Tenures> {
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
  { table, integrity, verified }: TenureContext,
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
    else items = itemsNow(items, keys, { replacements, stored: outcome.stored });
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: publicKey } });
}

function itemsNow(
  items: readonly (MarkItem | undefined)[],
  keys: readonly MarkKey[],
  failed: { readonly replacements: readonly Replacement[]; readonly stored: readonly (Stored | 'as_expected')[] },
): (MarkItem | undefined)[] {
  return keys.map((key, index) => {
    const place = failed.replacements.findIndex((replacement) => replacement.key === key);
    const stored = failed.stored[place];
    return place === -1 || stored === 'as_expected' ? items[index] : undamaged(stored, key.publicKey);
  });
}

function keysOf(publicKey: PublicKeyHex): MarkKey[] {
  return MARK_KINDS.map((kind) => ({ kind, publicKey }));
}
