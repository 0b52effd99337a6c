// The worker that owns the database connection. It answers calls in order; long ones go on in turns between the others.
// After a fault of the disk the connection is dropped and opened again by the next call.

import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../../common/observe/clock.ts';
import { SignerError } from '../../api/errors.ts';
import { eventLoopTurns } from '../../parallel.ts';
import { rowIntegrity } from '../history/codes.ts';
import { incarnationText, newNumber, readIncarnations } from '../incarnation.ts';
import { exportHistories } from '../operations/export.ts';
import { mergeStaged } from '../operations/import.ts';
import type { StagedText } from '../operations/import-text.ts';
import { operationsThrough, storeOperations } from '../operations/operations.ts';
import { STEP_ENTRIES } from '../operations/store.ts';
import type { EntryCounts, MergeStrategy } from '../types.ts';
import { batchChecker } from './check.ts';
import { FilesChanged, openFilesOf } from './file/open-files.ts';
import { heldExports } from './held-exports.ts';
import { stagedHistories } from './staged-histories.ts';
import { type DatabaseStore, databaseStore } from './store.ts';
import { keyList } from './tables/key-list.ts';
import { storeRecord } from './tables/record.ts';
import { inTransaction, isDamage, isFaultOfConnection } from './tables/rows.ts';
import { type DatabaseOptions, DatabaseRefusal, openDatabase } from './tables/schema.ts';
import { type DatabaseWorkerData, packVerdicts, type ReplyMessage, unpackBatch } from './wire.ts';

if (parentPort === null) throw new Error('this file runs as a worker');
const port = parentPort;
const { path, genesisValidatorsRoot, integrityKey, file } = workerData as DatabaseWorkerData;
const options: DatabaseOptions = {
  path,
  genesisValidatorsRoot,
  integrity: rowIntegrity({ genesisValidatorsRoot, key: integrityKey }),
};
integrityKey?.fill(0);

/** What the health check writes and takes away; imports count from 1. */
const NO_IMPORT = 0;
const NO_KEY = `0x${'00'.repeat(48)}`;

let database: ReturnType<typeof open> | undefined;
let expectedFile = file;
const turns = eventLoopTurns(STEP_ENTRIES);
const exports_ = heldExports((publicKeys) => exportHistories(opened().store, publicKeys), systemClock);

/**
 * The calls of the main thread, by their names. Histories travel as JSON text: a structured clone of every entry would
 * cost more than the database does.
 */
const handlers = {
  open: () => ({ file: opened().files.database }),
  check(batch: ArrayBuffer) {
    const { check, files } = opened();
    const verdicts = packVerdicts(check(unpackBatch(batch)));
    files.confirm(); // what went into another file, or one without a name, is not recorded
    return verdicts;
  },
  health() {
    const { connection, files, staged } = opened();
    // A commit of nothing that stays: a full disk takes the write lock, and no page.
    inTransaction(connection, () => {
      staged.add(NO_IMPORT, [[NO_KEY, '']]);
      staged.removeSome(NO_IMPORT);
    });
    files.confirm();
    return null;
  },
  stage(importId: number, parts: readonly StagedText[]) {
    const { connection, staged } = opened();
    inTransaction(connection, () => staged.add(importId, parts));
    return null;
  },
  /** What was staged; `parts` is how many that must be. */
  async merge(importId: number, parts: number, strategy: MergeStrategy) {
    const { staged, store } = opened();
    if (staged.count(importId) !== parts) throw new Error('a part of the import was lost on the way');
    return mergeStaged(store, staged.of(importId), strategy);
  },
  async discard(importId: number) {
    const { staged, store } = opened();
    while (staged.removeSome(importId)) await store.turn();
    return null;
  },
  beginExport: exports_.begin,
  continueExport: exports_.next,
  endExport: exports_.end,
  status() {
    const row = opened()
      .connection.prepare(
        `SELECT count(*) FILTER (WHERE block_count + attestation_count > 0) AS validators,
                coalesce(sum(block_count), 0) AS blocks, coalesce(sum(attestation_count), 0) AS attestations
         FROM validators`,
      )
      .get();
    return row as unknown as EntryCounts;
  },
  ...operationsThrough((name, given) => opened().operations[name](...given)),
  /** @param endedAt noted as the end in order; null: nothing is noted @returns the number of the end */
  async close(endedAt: number | null) {
    turns.close();
    await exports_.endAll();
    try {
      return endedAt === null ? null : await noteEnd(opened().store, endedAt);
    } finally {
      database?.store.close();
      database?.connection.close();
      database = undefined;
      options.integrity.wipe();
    }
  },
};

export type DatabaseCalls = typeof handlers;

export interface CallMessage {
  readonly id: number;
  readonly call: keyof DatabaseCalls;
  readonly arguments_: readonly unknown[];
}

port.on('message', async ({ id, call, arguments_ }: CallMessage) => {
  if (exports_.held.size > 0) void exports_.endStalled();
  try {
    // The main thread sends each call with the arguments of its name (backend.ts).
    const result = await (handlers[call] as (...given: readonly unknown[]) => unknown)(...arguments_);
    port.postMessage({ id, result } satisfies ReplyMessage);
  } catch (error) {
    port.postMessage(failure(id, error));
  }
  if (call === 'close') port.close();
});

/** The number tells what was closed from an older copy, its time from one that comes back with its mark. */
async function noteEnd({ changeRecord }: DatabaseStore, at: number): Promise<string> {
  const number = newNumber();
  await changeRecord((before) => {
    const own = readIncarnations(before.incarnation);
    return { ...before, incarnation: incarnationText({ ...own, end: { number, at } }) };
  }, false);
  return number;
}

function failure(id: number, error: unknown): ReplyMessage {
  const isShown = error instanceof FilesChanged || error instanceof DatabaseRefusal;
  const hint = isShown ? error.message : error instanceof SignerError ? error.hint : undefined;
  if (isDamage(error)) return { id, reason: 'slashing_integrity', error, hint };
  // An import that was interrupted says so, and by what.
  if (isFaultOfConnection(error) || isFaultOfConnection(error instanceof Error && error.cause)) dropConnection();
  return { id, reason: 'slashing_unavailable', error, hint };
}

function opened(): ReturnType<typeof open> {
  database ??= open();
  return database;
}

function open() {
  const connection = openDatabase(options);
  try {
    const files = openFilesOf(path, expectedFile);
    const keys = keyList(connection, storeRecord(connection, options));
    const check = batchChecker(connection, options, keys);
    const staged = stagedHistories(connection, options);
    const store = databaseStore({ connection, options, files, keys, turns });
    staged.removeAll();
    expectedFile = files.database;
    return { connection, files, check, staged, store, operations: storeOperations(store) };
  } catch (error) {
    connection.close();
    throw error;
  }
}

function dropConnection(): void {
  const dropped = database;
  database = undefined;
  try {
    dropped?.store.close();
    dropped?.connection.close();
  } catch {
    // It is gone either way; the next call opens another.
  }
}
