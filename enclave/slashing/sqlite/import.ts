// Merges histories into the database, all of an import or nothing. Histories are kept aside in a temporary table while
// they arrive, so that checks go on, and are merged in one transaction. Nothing that was refused becomes allowed: marks
// of a key that has entries never fall, entries that contradict each other lose their roots, so that everything at
// their place is refused, and an entry that would have been refused comes without its root.

import type { DatabaseSync } from 'node:sqlite';
import { importedBlock, importedVote, type LowWaterMarks, minimalMarks } from '../history/carried-entries.ts';
import type { ImportSummary, ValidatorHistory } from '../types.ts';
import { readHistory } from './calls.ts';
import { type BlockEntry, type EntryTables, entryTables, type VoteEntry } from './entries.ts';
import { type DatabaseOptions, inTransaction, validatorCounter } from './schema.ts';
import { damaged, lowWaterOf, newValidator, type Validator, validatorTable } from './validators.ts';

type Merged = 'new' | 'alreadyPresent' | 'conflicts';

export function importer(connection: DatabaseSync, options: DatabaseOptions) {
  connection.exec('CREATE TEMP TABLE staged (import_id INTEGER NOT NULL, history TEXT NOT NULL) STRICT');
  const insert = connection.prepare('INSERT INTO temp.staged VALUES (?, ?)');
  const select = connection.prepare('SELECT history FROM temp.staged WHERE import_id = ? ORDER BY rowid');
  const clear = connection.prepare('DELETE FROM temp.staged WHERE import_id = ?');
  const validators = validatorTable(connection, options.integrity);
  const entries = entryTables(connection, options.integrity);
  const counter = validatorCounter(connection, options);

  function mergeHistory(
    history: ValidatorHistory,
    summary: Record<Merged, number>,
    asMinimal: boolean,
  ): { isNewKey: boolean } {
    if (history.blocks.length === 0 && history.attestations.length === 0) return { isNewKey: false };
    const publicKey = Buffer.from(history.publicKey.slice(2), 'hex');
    const known = validators.find(publicKey);
    const validator = known ?? newValidator(publicKey);
    if (known === undefined) validators.save(validator);
    const lowWater = lowWaterOf(validator);
    // In ascending order, so that the low-water marks of a key without entries are those of the lowest, and so that an
    // entry rarely has to be compared with the whole history.
    for (const entry of history.blocks.toSorted((one, other) => one.slot - other.slot)) {
      summary[mergeBlock(entries, validator, entry, lowWater)] += 1;
    }
    mergeVotes(validator, history.attestations.toSorted(byTarget), summary);
    if (asMinimal) raiseLowWater(validator, minimalMarks(lowWaterOf(validator), history));
    validators.save(validator);
    return { isNewKey: known === undefined };
  }

  function mergeVotes(validator: Validator, votes: readonly VoteEntry[], summary: Record<Merged, number>): void {
    const lowWater = lowWaterOf(validator);
    lowerFirstMarks(validator, votes);
    const added = new Set<string>();
    let isAscending = true;
    for (const entry of votes) {
      isAscending &&= isBeyondVotes(validator, entry);
      const merged = mergeVote(entries, validator, entry, lowWater);
      summary[merged] += 1;
      if (merged === 'new') added.add(nameOf(entry));
    }
    // Votes that each lie beyond all earlier ones surround nothing.
    if (isAscending || added.size === 0) return;
    const conflicts = surroundVotes(entries.allVotes(validator)).filter((entry) => added.has(nameOf(entry)));
    for (const entry of conflicts) {
      if (entry.signingRoot !== null) entries.putVote(validator, { ...entry, signingRoot: null });
    }
    summary.new -= conflicts.length;
    summary.conflicts += conflicts.length;
  }

  return {
    stage: (importId: number, histories: readonly string[]) => {
      for (const history of histories) insert.run(importId, history);
    },
    discard: (importId: number) => {
      clear.run(importId);
    },
    merge: (importId: number, staged: number, asMinimal: boolean): ImportSummary =>
      inTransaction(connection, () => {
        const counts = { new: 0, alreadyPresent: 0, conflicts: 0 };
        const keys = new Set<string>();
        let [histories, blocks, attestations, newKeys] = [0, 0, 0, 0];
        // Before anything is added: a key that is missing is new only while no other head is gone.
        const keysBefore = counter.verified();
        for (const row of select.iterate(importId)) {
          const history = readHistory(String(row['history']));
          if (mergeHistory(history, counts, asMinimal).isNewKey) newKeys += 1;
          keys.add(history.publicKey);
          histories += 1;
          blocks += history.blocks.length;
          attestations += history.attestations.length;
        }
        if (newKeys > 0) {
          if (keysBefore === undefined) throw damaged('a validator is missing');
          counter.set(keysBefore + newKeys);
        }
        if (histories !== staged) throw new Error('a part of the import was lost on the way');
        clear.run(importId);
        const { alreadyPresent, conflicts } = counts;
        return { validators: keys.size, blocks, attestations, alreadyPresent, conflicts };
      }),
  };
}

/** `lowWater`: the marks of the key before the import. */
function mergeBlock(entries: EntryTables, validator: Validator, entry: BlockEntry, lowWater: LowWaterMarks): Merged {
  const known = isBeyondBlocks(validator, entry) ? undefined : entries.blockAt(validator, entry.slot);
  if (known === undefined) {
    entries.putBlock(validator, importedBlock(entry, lowWater));
    return 'new';
  }
  if (sameRoot(known.signingRoot, entry.signingRoot)) return 'alreadyPresent';
  if (known.signingRoot !== null) entries.putBlock(validator, { slot: entry.slot, signingRoot: null });
  return 'conflicts';
}

function mergeVote(entries: EntryTables, validator: Validator, entry: VoteEntry, lowWater: LowWaterMarks): Merged {
  const atTarget = isBeyondVotes(validator, entry) ? [] : entries.votesFor(validator, entry.targetEpoch);
  const known = atTarget.find(({ sourceEpoch }) => sourceEpoch === entry.sourceEpoch);
  if (known !== undefined && sameRoot(known.signingRoot, entry.signingRoot)) return 'alreadyPresent';
  if (atTarget.length > 0) {
    for (const one of atTarget) if (one.signingRoot !== null) entries.putVote(validator, { ...one, signingRoot: null });
    if (known === undefined) entries.putVote(validator, { ...entry, signingRoot: null });
    return 'conflicts';
  }
  // An entry with a source beyond its target is merged as it is: votes can surround it, and must not.
  entries.putVote(validator, importedVote(entry, lowWater));
  return entry.sourceEpoch > entry.targetEpoch ? 'conflicts' : 'new';
}

/** Those of the votes, in ascending order of their targets, that surround another or are surrounded. */
function surroundVotes(votes: readonly VoteEntry[]): VoteEntry[] {
  const surrounding = votes.filter(
    isExtreme((source, highest) => source < highest, Math.max, Number.NEGATIVE_INFINITY),
  );
  const surrounded = votes
    .toReversed()
    .filter(isExtreme((source, lowest) => source > lowest, Math.min, Number.POSITIVE_INFINITY));
  return [...new Set([...surrounding, ...surrounded])];
}

/** Whether a source lies beyond the extreme source of all votes seen before, those for the same target left out. */
function isExtreme(
  isBeyond: (source: number, extreme: number) => boolean,
  extremeOf: (one: number, other: number) => number,
  first: number,
) {
  let [extreme, extremeOfTarget, target] = [first, first, Number.NaN];
  return (vote: VoteEntry): boolean => {
    if (vote.targetEpoch !== target) {
      extreme = extremeOf(extreme, extremeOfTarget);
      extremeOfTarget = first;
      target = vote.targetEpoch;
    }
    extremeOfTarget = extremeOf(extremeOfTarget, vote.sourceEpoch);
    return isBeyond(vote.sourceEpoch, extreme);
  };
}

function raiseLowWater(validator: Validator, { slot, sourceEpoch, targetEpoch }: LowWaterMarks): void {
  validator.lowSlot = slot;
  validator.lowSourceEpoch = sourceEpoch;
  validator.lowTargetEpoch = targetEpoch;
}

/** The marks of a key without votes start at the lowest epochs of the file, which need not be those of one entry. */
function lowerFirstMarks(validator: Validator, votes: readonly VoteEntry[]): void {
  if (validator.lowTargetEpoch !== null || votes.length === 0) return;
  validator.lowSourceEpoch = votes.reduce((lowest, { sourceEpoch }) => Math.min(lowest, sourceEpoch), Infinity);
  validator.lowTargetEpoch = votes.reduce((lowest, { targetEpoch }) => Math.min(lowest, targetEpoch), Infinity);
}

function isBeyondBlocks(validator: Validator, { slot }: BlockEntry): boolean {
  return validator.highSlot === null || slot > validator.highSlot;
}

function isBeyondVotes(validator: Validator, { sourceEpoch, targetEpoch }: VoteEntry): boolean {
  const { highSourceEpoch, highTargetEpoch } = validator;
  return (
    (highTargetEpoch === null || targetEpoch > highTargetEpoch) &&
    (highSourceEpoch === null || sourceEpoch >= highSourceEpoch)
  );
}

function nameOf({ sourceEpoch, targetEpoch }: VoteEntry): string {
  return `${sourceEpoch}/${targetEpoch}`;
}

function byTarget(one: VoteEntry, other: VoteEntry): number {
  return one.targetEpoch - other.targetEpoch || one.sourceEpoch - other.sourceEpoch;
}

function sameRoot(one: Uint8Array | null, other: Uint8Array | null): boolean {
  return one === null || other === null ? one === other : Buffer.compare(one, other) === 0;
}
