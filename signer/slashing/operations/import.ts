// Merges what was staged. First every key that is named is shown to be whole, before anything is written. Then a few
// keys at a time are merged in one transaction. A fault leaves some keys merged: that only refuses more.

import { isDeepStrictEqual } from 'node:util';
import { SignerError } from '../../api/errors.ts';
import { chunks } from '../../parallel.ts';
import type { KeyState } from '../history/head.ts';
import { listConflicts, type MergedKey, mergeKey } from '../history/merge.ts';
import { historyReducer } from '../interchange/reduce.ts';
import type { HistoryPart, ImportSummary, KeyHistory, MergeStrategy, StoreFloor } from '../types.ts';
import {
  type CompleteStore,
  HEADS_ARE_GONE,
  type Head,
  type HistorySink,
  historyCollector,
  inSnapshot,
  keyHex,
  NO_KEY,
  PAGE_KEYS,
  type Rows,
  STEP_ENTRIES,
  type StagedImport,
  type WritableRows,
} from './store.ts';

/** Their histories are in memory at the same time. */
const KEYS_AT_ONCE = 8;

type MergeCounts = Pick<ImportSummary, 'validators' | 'alreadyPresent' | 'conflicts' | 'conflicting'>;

/** @throws SignerError slashing_integrity, when a key that is named is damaged */
export async function mergeStaged(
  store: CompleteStore,
  staged: StagedImport,
  strategy: MergeStrategy,
): Promise<MergeCounts> {
  const keys = await verifiedKeys(store, staged);
  let counts: MergeCounts = { validators: 0, alreadyPresent: 0, conflicts: 0, conflicting: [] };
  let ready: ReadyKey[] = [];
  let entries = 0;
  const write = async (): Promise<void> => {
    await store.turn();
    const merged = await store.transaction((rows) => writeKeys(store, rows, ready, strategy), true);
    counts = merged.reduce(counted, counts);
    [ready, entries] = [[], 0];
  };
  try {
    for (const page of chunks(keys, KEYS_AT_ONCE)) {
      for (const key of await inSnapshot(store, (rows) => readKeys(store, rows, staged, page))) {
        await store.turn(key.entries);
        ready.push(mergedKey(store, key, strategy));
        entries += key.entries;
        if (entries >= STEP_ENTRIES) await write();
      }
    }
    if (ready.length > 0) await write();
  } catch (error) {
    throw counts.validators === 0 ? error : interrupted(error, counts.validators, keys.length);
  }
  return counts;
}

function counted(counts: MergeCounts, { publicKey, merged }: ReadyKey): MergeCounts {
  return {
    validators: counts.validators + 1,
    alreadyPresent: counts.alreadyPresent + merged.alreadyPresent,
    conflicts: counts.conflicts + merged.conflicts,
    conflicting: listConflicts(counts.conflicting, keyHex(publicKey), merged.conflicting),
  };
}

function interrupted(cause: unknown, merged: number, all: number): SignerError {
  const reason = cause instanceof SignerError ? cause.reason : 'slashing_unavailable';
  return new SignerError(reason, {
    cause,
    hint: `the import was interrupted after ${merged} of ${all} keys: repeat it`,
    ...(cause instanceof SignerError && cause.detail !== undefined ? { detail: cause.detail } : {}),
  });
}

async function verifiedKeys(store: CompleteStore, staged: StagedImport): Promise<Uint8Array[]> {
  const keys: Uint8Array[] = [];
  const added: Uint8Array[] = [];
  for (let last = NO_KEY; ; ) {
    const page = await staged.keysAfter(last, PAGE_KEYS);
    const known = await inSnapshot(store, (rows) => verify(rows, page));
    keys.push(...page);
    added.push(...page.filter((key) => !known.has(keyHex(key))));
    last = page.at(-1) ?? last;
    await store.turn(page.length);
    if (page.length < PAGE_KEYS) break;
  }
  for (const page of chunks(added, PAGE_KEYS)) await store.addKeys(page);
  return keys;
}

async function verify(rows: Rows, publicKeys: readonly Uint8Array[]): Promise<ReadonlySet<string>> {
  const heads = await rows.heads(publicKeys);
  for (const some of chunks(heads, KEYS_AT_ONCE)) {
    await Promise.all(some.map((head) => rows.history(head, NOWHERE)));
  }
  return new Set(heads.map(({ publicKey }) => keyHex(publicKey)));
}

const NOWHERE: HistorySink = { block() {}, vote() {} };

interface ReadKey {
  readonly publicKey: Uint8Array;
  readonly imported: HistoryPart;
  readonly recorded: KeyHistory;
  /** What a merge rests on: while both stay, so does its result. */
  readonly basis: { readonly state: KeyState; readonly floor: StoreFloor | null };
  readonly entries: number;
}

interface ReadyKey extends ReadKey {
  readonly merged: MergedKey;
}

function mergedKey({ codes }: CompleteStore, key: ReadKey, strategy: MergeStrategy): ReadyKey {
  const { publicKey, recorded, imported, basis } = key;
  return { ...key, merged: mergeKey({ publicKey, recorded, ...basis }, imported, strategy, codes) };
}

async function readKeys(
  store: CompleteStore,
  rows: Rows,
  staged: StagedImport,
  publicKeys: readonly Uint8Array[],
): Promise<ReadKey[]> {
  const [{ floor }, heads] = await Promise.all([rows.record(), rows.heads(publicKeys)]);
  if (heads.length < publicKeys.length) throw new SignerError('slashing_integrity', { hint: HEADS_ARE_GONE });
  return Promise.all(
    heads.map(async (head) => readKey(rows, head, floor, await foldedParts(store, staged, head.publicKey))),
  );
}

async function readKey(rows: Rows, head: Head, floor: StoreFloor | null, imported: HistoryPart): Promise<ReadKey> {
  const { history: recorded, sink } = historyCollector();
  await rows.history(head, sink);
  const lists = [imported.blocks, imported.attestations, recorded.blocks, recorded.attestations];
  const entries = lists.reduce((sum, { length }) => sum + length, 1);
  return { publicKey: head.publicKey, imported, recorded, basis: { state: head.state, floor }, entries };
}

async function foldedParts(store: CompleteStore, staged: StagedImport, publicKey: Uint8Array): Promise<HistoryPart> {
  const reducer = historyReducer();
  for await (const part of staged.parts(publicKey)) {
    reducer.add(part);
    await store.turn(part.blocks.length + part.attestations.length);
  }
  return reducer.result();
}

/** A key that signed meanwhile is read and merged again. */
async function writeKeys(
  store: CompleteStore,
  rows: WritableRows,
  keys: readonly ReadyKey[],
  strategy: MergeStrategy,
): Promise<ReadyKey[]> {
  // After the heads are locked: what a jump refuses meanwhile is no repeat afterwards.
  const [heads, { floor }] = await Promise.all([rows.heads(keys.map(({ publicKey }) => publicKey)), rows.record()]);
  if (heads.length < keys.length) throw new SignerError('slashing_integrity', { hint: HEADS_ARE_GONE });
  return Promise.all(
    keys.map(async (ahead, index) => {
      const head = heads[index] as Head;
      const key = isDeepStrictEqual(ahead.basis, { state: head.state, floor })
        ? ahead
        : mergedKey(store, await readKey(rows, head, floor, ahead.imported), strategy);
      const { state, added, contradicted: replaced } = key.merged;
      await rows.change(head, { state, added, replaced });
      return key;
    }),
  );
}
