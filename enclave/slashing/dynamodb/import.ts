// Merging EIP-3076 histories into the table. The whole input is read, and every item it touches is verified, before
// the first write. Up to MAX_BATCH_ITEMS items are one transaction: all or nothing. The service has no larger one, so a
// larger import is a series of transactions that a fault may interrupt. That is safe and can be repeated, because a
// merge only raises marks: what was written refuses more, never less, and is found already present the next time.

import { SignerError } from '../../api/errors.ts';
import type { Log } from '../../observe/log.ts';
import type { RowIntegrity } from '../history/integrity.ts';
import type { ImportSummary, ValidatorHistory } from '../types.ts';
import type { VerifiedItems } from './check.ts';
import { type Mark, type MarkItem, type MarkKey, markItem, partitionOf } from './items.ts';
import { isSameMark, marksOfHistory, mergeMarks } from './merge.ts';
import { MAX_BATCH_ITEMS, type Replacement, type SlashingTable } from './table.ts';

/** Each failed attempt means that a signer wrote one of the items in between. */
const MAX_WRITE_ATTEMPTS = 8;

export interface ImportContext {
  readonly table: SlashingTable;
  readonly integrity: RowIntegrity;
  readonly verified: VerifiedItems;
  readonly log: Log;
}

/** @throws SignerError slashing_unavailable (repeat the import), slashing_integrity (nothing was written) */
export async function importHistories(
  histories: AsyncIterable<ValidatorHistory>,
  context: ImportContext,
): Promise<ImportSummary> {
  const { entries, counts } = await gather(histories);
  const batches = chunks([...entries.values()], MAX_BATCH_ITEMS);
  let alreadyPresent = 0;
  let conflicts = counts.conflicts;
  for (const batch of batches) {
    for (const [index, stored] of (await readVerified(batch, context)).entries()) {
      const entry = batch[index];
      if (entry === undefined || stored === undefined) continue;
      const { outcome } = mergeMarks(stored.mark, entry.mark);
      if (outcome === 'present') alreadyPresent += 1;
      if (outcome === 'conflict') conflicts += 1;
    }
  }
  for (const [index, batch] of batches.entries()) {
    await writeBatch(batch, context).catch((error: unknown) => {
      const facts = { items_merged: index * MAX_BATCH_ITEMS, items: entries.size };
      context.log.error({ ...facts, err: error }, 'a slashing import was interrupted: repeat it');
      throw error;
    });
  }
  return { ...counts, alreadyPresent, conflicts };
}

interface Entry {
  readonly key: MarkKey;
  readonly mark: Mark;
}

/** The whole input as one mark for each key and kind. */
async function gather(histories: AsyncIterable<ValidatorHistory>) {
  const entries = new Map<string, Entry>();
  const validators = new Set<string>();
  const counts = { validators: 0, blocks: 0, attestations: 0, conflicts: 0 };
  for await (const history of histories) {
    const { publicKey } = history;
    validators.add(publicKey);
    counts.blocks += history.blocks.length;
    counts.attestations += history.attestations.length;
    for (const mark of marksOfHistory(history)) {
      const key = { kind: mark.kind, publicKey };
      const known = entries.get(partitionOf(key));
      const merged = known === undefined ? undefined : mergeMarks(known.mark, mark);
      if (merged?.outcome === 'conflict') counts.conflicts += 1;
      entries.set(partitionOf(key), { key, mark: merged?.mark ?? mark });
    }
  }
  return { entries, counts: { ...counts, validators: validators.size } };
}

async function writeBatch(batch: readonly Entry[], context: ImportContext): Promise<void> {
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const stored = await readVerified(batch, context);
    const replacements = batch.flatMap((entry, index) => replacementOf(entry, stored[index], context.integrity));
    if (replacements.length === 0) return;
    if ((await context.table.replaceAll(replacements)) === 'replaced') {
      for (const { key, next } of replacements) context.verified.remember(key, next);
      return;
    }
  }
  throw new SignerError('slashing_unavailable', { detail: { contended: 'import' } });
}

function replacementOf({ key, mark }: Entry, expected: MarkItem | undefined, integrity: RowIntegrity): Replacement[] {
  const merged = expected === undefined ? mark : mergeMarks(expected.mark, mark).mark;
  if (expected !== undefined && isSameMark(merged, expected.mark)) return [];
  // As the minimal strategy of EIP-3076 has it, what was imported may not even be signed again: no root is kept.
  return [{ key, expected, next: markItem(key.publicKey, { ...merged, signingRoot: null }, integrity) }];
}

async function readVerified(batch: readonly Entry[], { table }: ImportContext): Promise<(MarkItem | undefined)[]> {
  const stored = await table.readMany(batch.map(({ key }) => key));
  return stored.map((item, index) => {
    if (item !== 'damaged') return item;
    throw new SignerError('slashing_integrity', { detail: { public_key: batch[index]?.key.publicKey } });
  });
}

function chunks<Element>(list: readonly Element[], size: number): Element[][] {
  const count = Math.ceil(list.length / size);
  return Array.from({ length: count }, (_, index) => list.slice(index * size, (index + 1) * size));
}
