// Merges histories into the database, all of an import or nothing, in steps, so that checks go on. Histories are staged
// in a table while they arrive. Then every key that they touch is shown to be whole, in steps. Then one small
// transaction decides the import: from there on it happens, also after a crash. Then it is applied, some keys a step; a
// key that it is not applied to yet is held: nothing is decided about it. What is not decided when the database is
// opened is discarded. How a history is merged is history/merge.ts.

import type { DatabaseSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { encodeHex } from '../../../../formats/hex.ts';
import { listConflicts, MAX_LISTED_CONFLICTS } from '../../conflicts.ts';
import { historyCodes } from '../../history/codes.ts';
import { mergeKey } from '../../history/merge.ts';
import { type BlockEntry, NEW_KEY, type VoteEntry } from '../../history/state.ts';
import type { ImportConflict, MergeStrategy } from '../../types.ts';
import type { MergeCounts } from '../calls.ts';
import type { StagedHistory } from '../history-text.ts';
import type { DatabaseOptions } from '../options.ts';
import { metered, STEP_ENTRIES, type Steps, stepMeter } from '../steps.ts';
import { damaged, isDamage } from '../tables/cells.ts';
import { entryTables, historyCollector } from '../tables/entries.ts';
import { headTable } from '../tables/heads.ts';
import { keyList, keyText } from '../tables/key-list.ts';
import { type DecidedImport, type StoreRecord, storeRecord, withKeys } from '../tables/record.ts';
import { DatabaseRefusal, inTransaction } from '../tables/schema.ts';
import { stagedHistories } from '../tables/staged.ts';
import { foldedHistory, verifiedKeys } from './import-verify.ts';
import { haveSameEntries, type MergeBasis, type MergedAhead, type PreparedKey, sizeOf } from './prepared.ts';

export interface Importer {
  stage(importId: number, histories: readonly StagedHistory[]): void;
  /** Merge everything that was staged; `staged` is how many histories that must be. */
  merge(importId: number, staged: number, strategy: MergeStrategy): Steps<MergeCounts>;
  /** Forget what was staged, unless it is decided. */
  discard(importId: number): Steps<null>;
  isApplying(): boolean;
  /** Whether a decided import waits for somebody to finish it. */
  isUnfinished(): boolean;
  finish(): Steps<void>;
  /** Whether a decided import is not applied to the key yet. */
  isHeld(publicKey: Uint8Array): boolean;
}

/** @throws DatabaseRefusal when parts of a decided import are missing */
export function importer(
  connection: DatabaseSync,
  options: DatabaseOptions,
  stepEntries = STEP_ENTRIES,
  keyNames = keyList(connection, storeRecord(connection, options)),
): Importer {
  const { integrity } = options;
  const codes = historyCodes(integrity);
  const staged = stagedHistories(connection, options);
  const heads = headTable(connection, integrity);
  const entries = entryTables(connection, integrity);
  const records = storeRecord(connection, options);
  /** By their bytes as text. */
  const held = new Set<string>();
  let isApplying = false;

  function decide(decided: DecidedImport, keys: readonly Uint8Array[]): void {
    inTransaction(connection, () => {
      const store = records.read();
      if (store.decided !== null) throw new Error('another import is being applied: try again');
      records.write({ ...store, decided });
    });
    for (const publicKey of keys) held.add(keyText(publicKey));
  }

  function* prepare(importId: number, publicKey: Uint8Array): Steps<PreparedKey> {
    const imported = yield* foldedHistory(staged, importId, publicKey);
    const head = heads.find(publicKey);
    const recorded = { blocks: [] as BlockEntry[], attestations: [] as VoteEntry[] };
    if (head !== undefined) yield* entries.read(head, historyCollector(recorded));
    return { publicKey, imported, head, recorded };
  }

  function* applyAll(decided: Decided): Steps<Counts> {
    const counts: Counts = { alreadyPresent: 0, conflicts: 0, conflicting: [] };
    let ready: PreparedKey[] = [];
    let [waiting, isDamaged] = [0, false];
    const meter = stepMeter(stepEntries);
    for (const key of [...held]) {
      const publicKey = Buffer.from(key, 'latin1');
      try {
        const prepared = yield* metered(prepare(decided.importId, publicKey), meter);
        ready.push(prepared);
        waiting += sizeOf(prepared);
      } catch (error) {
        if (!isDamage(error)) throw error;
        isDamaged = true; // the key stays held; the others need not wait for its repair
      }
      if (waiting < stepEntries) continue;
      isDamaged = (yield* applyInSteps(ready, waiting, decided, counts)) || isDamaged;
      [ready, waiting] = [[], 0];
    }
    isDamaged = (yield* applyInSteps(ready, waiting, decided, counts)) || isDamaged;
    if (isDamaged) throw damaged('a key that an import is to be merged into');
    return counts;
  }

  /** What was read is a step, what is computed of it another, and what is written the third. */
  function* applyInSteps(
    keys: readonly PreparedKey[],
    entries: number,
    decided: Decided,
    counts: Counts,
  ): Steps<boolean> {
    if (keys.length === 0) return false;
    yield entries;
    const { floor } = records.read();
    const ahead = keys.map((key) => {
      const basis = { state: key.head?.state ?? NEW_KEY, floor };
      return { ...key, basis, merged: mergeOne(key, basis, decided.strategy) };
    });
    yield entries;
    const isDamaged = applyKeys(ahead, decided, counts);
    yield entries;
    return isDamaged;
  }

  function mergeOne({ publicKey, recorded, imported }: PreparedKey, basis: MergeBasis, strategy: MergeStrategy) {
    return mergeKey({ publicKey, recorded, ...basis }, imported, strategy, codes);
  }

  /** Returns whether a key of them is damaged, and was left out. */
  function applyKeys(keys: readonly MergedAhead[], decided: Decided, counts: Counts): boolean {
    if (keys.length === 0) return false;
    try {
      applyTogether(keys, decided, counts);
      return false;
    } catch (error) {
      if (!isDamage(error)) throw error;
      if (keys.length === 1) return true;
      return keys.map((key) => applyKeys([key], decided, counts)).includes(true);
    }
  }

  function applyTogether(keys: readonly MergedAhead[], decided: Decided, counts: Counts): void {
    const { merged, added, after } = inTransaction(connection, () => {
      const store = records.read();
      const added: Uint8Array[] = [];
      let histories = store.decided?.histories ?? 0;
      const merged = keys.map((key) => {
        const result = applyKey(key, store, decided.strategy);
        histories -= staged.remove(decided.importId, key.publicKey);
        if (result.isNew) added.push(key.publicKey);
        return result;
      });
      const rest = histories > 0 ? { ...decided, histories } : null;
      const after = { ...withKeys(store, added), decided: rest };
      records.write(after);
      return { merged, added, after };
    });
    if (added.length > 0) keyNames.added(added, after);
    for (const { publicKey } of keys) held.delete(keyText(publicKey));
    for (const { alreadyPresent, conflicts, conflicting } of merged) {
      counts.alreadyPresent += alreadyPresent;
      counts.conflicts += conflicts;
      counts.conflicting = [...counts.conflicting, ...conflicting].slice(0, MAX_LISTED_CONFLICTS);
    }
  }

  function applyKey(key: MergedAhead, store: StoreRecord, strategy: MergeStrategy): Counts & { isNew: boolean } {
    const { floor } = store;
    const { publicKey, head: readHead } = key;
    const { blocks, attestations, leftOut } = key.imported;
    if (blocks.length + attestations.length === 0 && leftOut === undefined) return NOTHING_MERGED;
    const known = heads.find(publicKey); // it may have been retired since it was read
    if (!haveSameEntries(known?.state ?? NEW_KEY, readHead?.state ?? NEW_KEY)) throw damaged('validator');
    if (known === undefined) keyNames.confirmNew(publicKey, store);
    const head = known ?? { id: heads.nextId(), publicKey, state: NEW_KEY };
    const basis = { state: head.state, floor };
    const merged = isDeepStrictEqual(basis, key.basis) ? key.merged : mergeOne(key, basis, strategy);
    for (const block of merged.contradicted.blocks) entries.removeBlock(head.id, block);
    for (const vote of merged.contradicted.attestations) entries.removeVote(head.id, vote);
    for (const block of [...merged.contradicted.blocks, ...merged.added.blocks])
      entries.insertBlock(head.id, block, block);
    for (const vote of [...merged.contradicted.attestations, ...merged.added.attestations]) {
      entries.insertVote(head.id, vote, vote);
    }
    const changed = { ...head, state: merged.state };
    if (known === undefined) heads.insert(changed);
    else heads.update(changed);
    const { alreadyPresent, conflicts } = merged;
    const conflicting = listConflicts([], encodeHex(publicKey), merged.conflicting);
    return { alreadyPresent, conflicts, conflicting, isNew: known === undefined };
  }

  function* finish(): Steps<void> {
    const { decided } = records.read();
    if (decided === null || isApplying) return;
    isApplying = true;
    try {
      yield* applyAll(decided);
    } finally {
      isApplying = false;
    }
  }

  const unfinished = records.read().decided;
  staged.removeAllBut(unfinished?.importId ?? null);
  if (unfinished !== null) {
    for (const publicKey of staged.keys(unfinished.importId)) held.add(keyText(publicKey));
    const isWhole = staged.count(unfinished.importId) === unfinished.histories;
    if (!isWhole) throw new DatabaseRefusal('parts of an import that was decided are missing from the database');
  }

  return {
    stage: (importId, histories) => inTransaction(connection, () => staged.add(importId, histories)),
    *merge(importId, expected, strategy) {
      if (staged.count(importId) !== expected) throw new Error('a part of the import was lost on the way');
      const keys = yield* verifiedKeys(importId, { connection, options, staged, stepEntries });
      if (keys.length === 0) return { validators: 0, alreadyPresent: 0, conflicts: 0, conflicting: [] };
      decide({ importId, strategy, histories: staged.count(importId) }, keys);
      isApplying = true;
      try {
        yield keys.length;
        return { validators: keys.length, ...(yield* applyAll({ importId, strategy })) };
      } finally {
        isApplying = false;
      }
    },
    *discard(importId) {
      if (records.read().decided?.importId === importId) return null;
      yield* staged.removeImport(importId);
      return null;
    },
    isApplying: () => isApplying,
    isUnfinished: () => held.size > 0 && !isApplying,
    finish,
    isHeld: (publicKey) => held.size > 0 && held.has(keyText(publicKey)),
  };
}

type Decided = { readonly importId: number; readonly strategy: MergeStrategy };
type Counts = { alreadyPresent: number; conflicts: number; conflicting: readonly ImportConflict[] };

const NOTHING_MERGED = { alreadyPresent: 0, conflicts: 0, conflicting: [], isNew: false };
