// Keys that leave the store, and come back. The mark of it stands in both items of a key, under their codes, written in
// one transaction; every check compares and swaps one of the two, so none succeeds afterwards, whichever signer makes
// it. Marks stay as they are: a key that is reinstated refuses what it refused before.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../../../api/errors.ts';
import { jittered } from '../../../aws/dynamodb-transact.ts';
import { inParallel } from '../../../parallel.ts';
import type { RowIntegrity } from '../../history/integrity.ts';
import type { PublicKeyHex } from '../../types.ts';
import { MARK_KINDS, type MarkItem, type MarkKey, sealItem } from '../tables/items.ts';
import { MAX_BATCH_ITEMS, type Replacement, type SlashingTable, type Stored } from '../tables/table.ts';
import type { VerifiedItems } from './check.ts';

/** Each failed attempt means that a signer wrote one of the two items in between. */
const MAX_WRITE_ATTEMPTS = 64;
const CONFLICT_PAUSE_MS = 5;
const KEYS_AT_ONCE = 16;

export interface RetirementContext {
  readonly table: SlashingTable;
  readonly integrity: RowIntegrity;
  readonly verified: VerifiedItems;
}

/**
 * @returns the keys of which it changes something, ascending
 * @throws SignerError slashing_unavailable (some may be done: repeat it), slashing_integrity (a key's record is
 * damaged)
 */
export async function setRetired(
  publicKeys: readonly PublicKeyHex[],
  isRetired: boolean,
  context: RetirementContext,
): Promise<readonly PublicKeyHex[]> {
  const changed: PublicKeyHex[] = [];
  await inParallel([...new Set(publicKeys)], KEYS_AT_ONCE, async (publicKey) => {
    if (await setOne(publicKey, isRetired, context)) changed.push(publicKey);
  });
  return changed.sort();
}

/** Which of these keys, or of all, are retired; ascending. */
export async function retiredKeys(
  table: SlashingTable,
  publicKeys?: readonly PublicKeyHex[],
): Promise<readonly PublicKeyHex[]> {
  const retired = new Set<PublicKeyHex>();
  const look = ({ publicKey }: MarkKey, stored: Stored) => {
    if (verified(stored, publicKey)?.isRetired === true) retired.add(publicKey);
  };
  if (publicKeys === undefined) {
    for await (const page of table.scan('retired')) for (const { key, stored } of page) look(key, stored);
  } else {
    const keys = [...new Set(publicKeys)].flatMap(keysOf);
    for (let start = 0; start < keys.length; start += MAX_BATCH_ITEMS) {
      const some = keys.slice(start, start + MAX_BATCH_ITEMS);
      const stored = await table.readMany(some);
      for (const [index, key] of some.entries()) look(key, stored[index]);
    }
  }
  return [...retired].sort();
}

async function setOne(
  publicKey: PublicKeyHex,
  isRetired: boolean,
  { table, integrity, verified: remembered }: RetirementContext,
): Promise<boolean> {
  const keys = keysOf(publicKey);
  let items = (await table.readMany(keys)).map((stored) => verified(stored, publicKey));
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const replacements = keys.flatMap((key, index): Replacement[] => {
      const expected = items[index];
      if ((expected?.isRetired ?? false) === isRetired) return [];
      const content = { mark: expected?.mark, signed: expected?.signed, isRetired };
      return [{ key, expected, next: sealItem(key, content, integrity) }];
    });
    if (replacements.length === 0) return attempt > 1;
    const outcome = await table.replaceTogether(replacements);
    if (outcome.kind === 'replaced') {
      for (const { key, next } of replacements) remembered.remember(key, next);
      return true;
    }
    if (outcome.kind === 'conflict') await pause(jittered(CONFLICT_PAUSE_MS * attempt));
    else items = itemsNow(items, keys, { replacements, stored: outcome.stored });
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: publicKey } });
}

/** What a failed transaction said of the items that it found otherwise. */
function itemsNow(
  items: readonly (MarkItem | undefined)[],
  keys: readonly MarkKey[],
  failed: { readonly replacements: readonly Replacement[]; readonly stored: readonly (Stored | 'as_expected')[] },
): (MarkItem | undefined)[] {
  return keys.map((key, index) => {
    const place = failed.replacements.findIndex((replacement) => replacement.key === key);
    const stored = failed.stored[place];
    return place === -1 || stored === 'as_expected' ? items[index] : verified(stored, key.publicKey);
  });
}

function keysOf(publicKey: PublicKeyHex): MarkKey[] {
  return MARK_KINDS.map((kind) => ({ kind, publicKey }));
}

function verified(stored: Stored, publicKey: PublicKeyHex): MarkItem | undefined {
  if (stored === 'damaged') throw new SignerError('slashing_integrity', { detail: { public_key: publicKey } });
  return stored;
}
