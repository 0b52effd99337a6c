// Merging EIP-3076 histories into the table. The whole input is read, and every item it touches verified, before the
// first write. A larger import is a series of transactions that a fault may interrupt: it can be repeated, because a
// merge only raises marks. No item is written below the floor of the store, and retired keys stay retired.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../../../common/flow/backoff.ts';
import { SignerError } from '../../../api/errors.ts';
import { chunks } from '../../../parallel.ts';
import type { RowIntegrity } from '../../history/codes.ts';
import { higherMarks } from '../../history/head.ts';
import { listConflicts } from '../../history/merge.ts';
import { isRolledBack } from '../../history/rules.ts';
import type {
  ConflictingEntry,
  ImportConflict,
  ImportSummary,
  Marks,
  PublicKeyHex,
  StoreFloor,
  ValidatorHistory,
} from '../../types.ts';
import {
  attestationMark,
  blockMark,
  codedItem,
  hasSameNumbers,
  highWaterMarks,
  historyOf,
  isSameMark,
  MARK_KINDS,
  type Mark,
  type MarkItem,
  type MarkKey,
  markKeysOf,
  markPartition,
  raisedMark,
} from '../tables/items.ts';
import { MAX_BATCH_ITEMS, type Replacement, type SlashingTable, undamaged } from '../tables/table.ts';
import type { StoreContext } from './check.ts';

const MAX_WRITE_ATTEMPTS = 8;
const CONFLICT_PAUSE_MS = 10;
/** The condition on the record of the store takes one place. */
const ITEMS_AT_ONCE = MAX_BATCH_ITEMS - 1;
/** A few milliseconds of the event loop. */
const STEP_ENTRIES = 2_000;

/** @throws SignerError slashing_unavailable (repeat it), slashing_integrity (nothing was written) */
export async function importHistories(
  histories: AsyncIterable<ValidatorHistory>,
  context: StoreContext,
): Promise<ImportSummary> {
  const { entries, counts } = await gather(histories);
  const batches = chunks([...entries.values()], ITEMS_AT_ONCE);
  let alreadyPresent = 0;
  let { conflicts, conflicting } = counts;
  for (const batch of batches) {
    for (const [index, stored] of (await readVerified(keysOf(batch), context.table)).entries()) {
      const entry = batch[index];
      if (entry === undefined || stored?.mark === undefined) continue;
      const { outcome } = mergeMarks(stored.mark, entry.mark);
      if (outcome === 'present') alreadyPresent += 1;
      if (outcome !== 'conflict') continue;
      conflicts += 1;
      conflicting = listConflicts(conflicting, entry.key.publicKey, [placeOf(entry.mark)]);
    }
  }
  for (const [index, batch] of batches.entries()) {
    await writeBatch(batch, context).catch((error: unknown) => {
      const facts = { items_merged: index * ITEMS_AT_ONCE, items: entries.size };
      context.log.error({ ...facts, err: error }, 'a slashing import was interrupted: repeat it');
      throw error;
    });
  }
  return { ...counts, alreadyPresent, conflicts, conflicting };
}

interface Entry {
  readonly key: MarkKey;
  readonly mark: Mark;
}

const keysOf = (batch: readonly Entry[]): MarkKey[] => batch.map(({ key }) => key);

async function gather(histories: AsyncIterable<ValidatorHistory>) {
  const entries = new Map<string, Entry>();
  const validators = new Set<string>();
  const conflicting: readonly ImportConflict[] = [];
  const counts = { validators: 0, blocks: 0, attestations: 0, conflicts: 0, conflicting };
  const add = (publicKey: PublicKeyHex, mark: Mark): void => {
    const key = { kind: mark.kind, publicKey };
    const known = entries.get(markPartition(key));
    const merged = known === undefined ? undefined : mergeMarks(known.mark, mark);
    if (merged?.outcome === 'conflict') {
      counts.conflicts += 1;
      counts.conflicting = listConflicts(counts.conflicting, publicKey, [placeOf(mark)]);
    }
    if (known === undefined || merged?.mark !== known.mark) {
      entries.set(markPartition(key), { key, mark: merged?.mark ?? mark });
    }
  };
  let handled = 0;
  const isTime = (): boolean => ++handled % STEP_ENTRIES === 0;
  for await (const { publicKey, blocks, attestations, leftOut } of histories) {
    validators.add(publicKey);
    counts.blocks += blocks.length + (leftOut?.blocks ?? 0);
    counts.attestations += attestations.length + (leftOut?.attestations ?? 0);
    for (const block of blocks) {
      add(publicKey, blockMark(block));
      if (isTime()) await nextTurn();
    }
    for (const vote of attestations) {
      add(publicKey, attestationMark(vote));
      if (isTime()) await nextTurn();
    }
    if (leftOut !== undefined) addLeftOut(entries, publicKey, leftOut);
  }
  return { entries, counts: { ...counts, validators: validators.size } };
}

/** Entries that the reader left out are known by their highest numbers only, which are of no one message. */
function addLeftOut(entries: Map<string, Entry>, publicKey: PublicKeyHex, leftOut: Marks): void {
  for (const kind of MARK_KINDS) {
    const key = { kind, publicKey };
    const mark = raisedMark(kind, entries.get(markPartition(key))?.mark, leftOut);
    if (mark !== undefined) entries.set(markPartition(key), { key, mark });
  }
}

async function writeBatch(batch: readonly Entry[], context: StoreContext): Promise<void> {
  const { table, store, verified } = context;
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const { floor } = store;
    const stored = await readVerified(keysOf(batch), table);
    const replacements = batch.flatMap((entry, index) =>
      replacementOf(entry, stored[index], { floor, integrity: context.integrity }),
    );
    if (replacements.length === 0) return;
    // What is new to the table must not come below a floor that a jump raises at the same time.
    if (store.floor !== floor) continue;
    const outcome = await table.replaceTogether(replacements, store.isStillBound());
    if (outcome.kind === 'replaced') {
      for (const { key, next } of replacements) verified.remember(key, next);
      return;
    }
    if (outcome.kind === 'conflict') await pause(jittered(CONFLICT_PAUSE_MS * attempt));
    else if (outcome.isGuardBroken) await store.read();
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: 'import' } });
}

function replacementOf(
  { key, mark }: Entry,
  expected: MarkItem | undefined,
  { floor, integrity }: { readonly floor: StoreFloor | null; readonly integrity: RowIntegrity },
): Replacement[] {
  const merged = expected?.mark === undefined ? mark : mergeMarks(expected.mark, mark).mark;
  const isKnown = expected?.signed === undefined || !isRolledBack(expected.signed, highWaterMarks(mark));
  if (expected?.mark !== undefined && isSameMark(merged, expected.mark) && isKnown) return [];
  const raised = floor === null ? merged : (raisedMark(key.kind, merged, floor) ?? merged);
  // As the minimal strategy of EIP-3076 has it, what was imported may not even be signed again.
  const next = { mark: { ...raised, signingRoot: null }, tenure: expected?.tenure ?? 0 };
  const known = higherMarks(expected?.signed ?? highWaterMarks(expected?.mark), highWaterMarks(mark));
  const isRaised = isRolledBack(known, highWaterMarks(next.mark));
  return [{ key, expected, next: codedItem(key, { ...next, signed: isRaised ? known : undefined }, integrity) }];
}

async function readVerified(keys: readonly MarkKey[], table: SlashingTable): Promise<(MarkItem | undefined)[]> {
  const stored = await table.readMany(keys);
  return keys.map(({ publicKey }, index) => undamaged(stored[index], publicKey));
}

// DynamoDB has no view of a table at one moment; marks only rise, so an export is right for every key that has stopped.

const KEYS_AT_ONCE = MAX_BATCH_ITEMS / 2;

/** One block and one vote a key at most, in ascending order of keys. */
export async function* exportTable(
  table: SlashingTable,
  floor: StoreFloor | null,
  publicKeys?: readonly PublicKeyHex[],
): AsyncIterable<ValidatorHistory> {
  const wanted = [...new Set(publicKeys ?? (await countMarks(table)).publicKeys)].sort();
  for (const some of chunks(wanted, KEYS_AT_ONCE)) {
    const keys = some.flatMap(markKeysOf);
    // An export that left a damaged key out would let it sign anything elsewhere.
    const stored = await readVerified(keys, table);
    for (const [place, publicKey] of some.entries()) {
      const raised = MARK_KINDS.map((kind, index) => {
        const mark = stored[place * MARK_KINDS.length + index]?.mark;
        return floor === null ? mark : raisedMark(kind, mark, floor);
      });
      const history = historyOf(raised);
      if (history.blocks.length + history.attestations.length > 0) yield { publicKey, ...history };
    }
  }
}

export async function countMarks(table: SlashingTable) {
  const publicKeys = new Set<PublicKeyHex>();
  const counts = { block: 0, attestation: 0 };
  for await (const page of table.scan()) {
    for (const { key, stored } of page) {
      if (stored !== 'damaged' && stored.mark === undefined) continue;
      publicKeys.add(key.publicKey);
      counts[key.kind] += 1;
    }
  }
  return { publicKeys, counts };
}

// How marks rise when an EIP-3076 history is merged into them. A merged mark refuses whatever the mark or any entry of
// the history would: its numbers are the highest of all, and it keeps a root only while they are of one message.

interface Merge {
  readonly mark: Mark;
  /** `present` changes no number of the mark, `behind` lies below it, `conflict` is slashable against it. */
  readonly outcome: 'raised' | 'behind' | 'present' | 'conflict';
}

function placeOf(mark: Mark): ConflictingEntry {
  if (mark.kind === 'block') return { slot: mark.slot };
  return { sourceEpoch: mark.sourceEpoch, targetEpoch: mark.targetEpoch };
}

function mergeMarks(mark: Mark, entry: Mark): Merge {
  if (mark.kind !== entry.kind) throw new TypeError('marks of two kinds are never merged');
  if (hasSameNumbers(mark, entry)) return mergeRoots(mark, entry);
  // EIP-3076 condition 3: two votes for one target.
  const isDouble = mark.kind === 'attestation' && mark.targetEpoch === entry.targetEpoch;
  if (!isDouble && !isRolledBack(entry, mark)) return { mark: entry, outcome: 'raised' };
  if (!isDouble && !isRolledBack(mark, entry)) return { mark, outcome: 'behind' };
  // Or, EIP-3076 condition 3: the vote with the higher target has the lower source, so it surrounds the other.
  return { mark: raisedMark(mark.kind, mark, entry) ?? mark, outcome: 'conflict' };
}

/** Two roots of marks with the same numbers, or one that is unknown, leave nothing that may be signed again. */
function mergeRoots(mark: Mark, entry: Mark): Merge {
  if (mark.signingRoot === entry.signingRoot) return { mark, outcome: 'present' };
  const areBothKnown = mark.signingRoot !== null && entry.signingRoot !== null;
  return { mark: { ...mark, signingRoot: null }, outcome: areBothKnown ? 'conflict' : 'present' };
}
