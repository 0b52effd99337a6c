// The worker that owns the database connection. It answers calls in order; long ones go on in steps between the others
// (steps.ts). Each answer is a result or a failure, and a failure has left nothing half done. After a fault of the disk
// the connection is dropped and opened anew by the next call, so the worker recovers when the disk does.

import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../../observe/clock.ts';
import { rowIntegrity } from '../history/integrity.ts';
import { higherFloor, JUMP_REVISIONS } from '../jump.ts';
import type { StoreFloor, StoreIdentity } from '../types.ts';
import type { CallMessage, DatabaseCall, DatabaseCalls, DatabaseWorkerData, ReplyMessage } from './calls.ts';
import { FilesChanged, type OpenFiles, openFilesOf } from './file/open-files.ts';
import { batchChecker } from './operations/check.ts';
import { heldExports } from './operations/export.ts';
import { type Importer, importer } from './operations/import.ts';
import { pruner } from './operations/prune.ts';
import { keyRegister } from './operations/retire.ts';
import type { DatabaseOptions } from './options.ts';
import { stepRunner } from './step-runner.ts';
import { STEP_ENTRIES, type Steps } from './steps.ts';
import { isDamage, isFaultOfConnection } from './tables/cells.ts';
import { keyList } from './tables/key-list.ts';
import { identityOf, storeRecord } from './tables/record.ts';
import { DatabaseRefusal, inTransaction, openDatabase } from './tables/schema.ts';
import { packVerdicts, unpackBatch } from './wire.ts';

type Handlers = {
  [Name in DatabaseCall]: (
    arguments_: DatabaseCalls[Name][0],
  ) => DatabaseCalls[Name][1] | Steps<DatabaseCalls[Name][1]>;
};

interface Database {
  readonly connection: DatabaseSync;
  readonly files: OpenFiles;
  readonly isUpgraded: boolean;
  readonly check: ReturnType<typeof batchChecker>;
  readonly imports: Importer;
  readonly prune: ReturnType<typeof pruner>;
  readonly records: ReturnType<typeof storeRecord>;
  readonly register: ReturnType<typeof keyRegister>;
}

/** Before what a decided import still has to do is tried again, after a fault. */
const FINISH_PAUSE_MS = 1000;

if (parentPort === null) throw new Error('this file runs as a worker');
const port = parentPort;
const { path, genesisValidatorsRoot, integrityKey, file } = workerData as DatabaseWorkerData;
const options: DatabaseOptions = {
  path,
  genesisValidatorsRoot,
  integrity: rowIntegrity({ genesisValidatorsRoot, key: integrityKey }),
};
integrityKey?.fill(0);

let database: Database | undefined;
let expectedFile = file;
const exports_ = heldExports(options, systemClock);
const runner = stepRunner();
let finishing: NodeJS.Timeout | undefined;

const handlers: Handlers = {
  *open() {
    const { files, imports, isUpgraded } = opened();
    try {
      if (imports.isUnfinished()) yield* imports.finish();
    } catch (error) {
      if (!isDamage(error)) throw error; // the damaged key stays held, and is no reason to keep the others from signing
    }
    return { file: files.database, isUpgraded };
  },
  check({ batch }) {
    const { check, files } = opened();
    const verdicts = packVerdicts(check(unpackBatch(batch)));
    files.confirm(); // what went into another file, or one without a name, is not recorded
    return verdicts;
  },
  health() {
    const { check, connection, files } = opened();
    // A batch without messages: it takes the write lock and gives it back.
    check([]);
    connection.prepare('SELECT id FROM metadata').get();
    files.confirm();
    return null;
  },
  stage({ importId, histories }) {
    opened().imports.stage(importId, histories);
    return null;
  },
  merge: ({ importId, staged, strategy }) => confirmed(opened().imports.merge(importId, staged, strategy)),
  discard: ({ importId }) => opened().imports.discard(importId),
  *beginExport({ exportId, publicKeys }) {
    const { imports, files } = opened();
    while (imports.isApplying()) yield 0; // half an import is no state of the store
    if (imports.isUnfinished()) throw new Error('an import is not finished yet');
    files.confirm();
    exports_.begin(exportId, publicKeys ?? undefined);
    files.confirm();
    return null;
  },
  continueExport: ({ exportId }) => exports_.next(exportId),
  endExport({ exportId }) {
    exports_.end(exportId);
    return null;
  },
  prune: ({ afterId, maxEntries }) => opened().prune(afterId, maxEntries),
  status() {
    const row = opened()
      .connection.prepare(
        `SELECT count(*) AS validators, coalesce(sum(block_count), 0) AS blocks,
                coalesce(sum(attestation_count), 0) AS attestations FROM validators`,
      )
      .get();
    return {
      validators: Number(row?.['validators']),
      blocks: Number(row?.['blocks']),
      attestations: Number(row?.['attestations']),
    };
  },
  identity() {
    const { records, files } = opened();
    files.confirm();
    return identityOf(records.read());
  },
  raise: ({ revision, floor }) => raise(opened(), revision, floor),
  highest: () => opened().register.highest(),
  retire: ({ publicKeys }) => confirmed(opened().register.retire(publicKeys)),
  reinstate: ({ publicKeys }) => confirmed(opened().register.reinstate(publicKeys)),
  retired: ({ publicKeys }) => confirmed(opened().register.retired(publicKeys)),
  close() {
    runner.stop();
    exports_.endAll();
    database?.connection.close();
    database = undefined;
    options.integrity.wipe();
    return null;
  },
};

port.on('message', ({ id, call, arguments_ }: CallMessage) => {
  try {
    exports_.endStalled();
    // The main thread sends each call with the arguments of its name (calls.ts).
    const result = handlers[call](arguments_ as never);
    if (!isSteps(result)) port.postMessage({ id, result } satisfies ReplyMessage);
    else
      runner.begin(result, (outcome) =>
        port.postMessage('error' in outcome ? failure(id, outcome.error) : { id, ...outcome }),
      );
  } catch (error) {
    port.postMessage(failure(id, error));
  }
  if (call === 'close') {
    clearTimeout(finishing);
    port.close();
  } else finishLater();
});

/**
 * A decided import happens, whoever began it: also one that failed half-way, or was found when the database was opened
 * again.
 */
function finishLater(): void {
  if (finishing !== undefined || database?.imports.isUnfinished() !== true) return;
  finishing = setTimeout(() => {
    finishing = undefined;
    const imports = database?.imports;
    // What it says has nobody to hear it; it is tried again after the next call.
    if (imports?.isUnfinished() === true)
      runner.begin(imports.finish(), (outcome) => 'error' in outcome && failure(0, outcome.error));
  }, FINISH_PAUSE_MS).unref();
}

function failure(id: number, error: unknown): ReplyMessage {
  if (isDamage(error)) return { id, reason: 'slashing_integrity', error, hint: undefined };
  if (isFaultOfConnection(error)) dropConnection();
  const isShown = error instanceof FilesChanged || error instanceof DatabaseRefusal;
  return { id, reason: 'slashing_unavailable', error, hint: isShown ? error.message : undefined };
}

/** What was written while the files were taken away is not recorded, and what was read is of nobody. */
function* confirmed<Result>(steps: Steps<Result>): Steps<Result> {
  const result = yield* steps;
  opened().files.confirm();
  return result;
}

function raise({ connection, records, files }: Database, revision: number, floor: StoreFloor | null): StoreIdentity {
  const identity = inTransaction(connection, () => {
    const store = records.read();
    const raised = {
      ...store,
      revision: Math.max(store.revision + (floor === null ? 1 : JUMP_REVISIONS), revision),
      floor: floor === null ? store.floor : higherFloor(store.floor, floor),
    };
    records.write(raised);
    return identityOf(raised);
  });
  files.confirm();
  return identity;
}

function opened(): Database {
  if (database !== undefined) return database;
  const { connection, isUpgraded } = openDatabase(options);
  try {
    const files = openFilesOf(path, expectedFile);
    const records = storeRecord(connection, options);
    const keys = keyList(connection, records);
    const imports = importer(connection, options, STEP_ENTRIES, keys);
    database = {
      connection,
      files,
      isUpgraded,
      imports,
      check: batchChecker(connection, options, imports.isHeld, keys),
      prune: pruner(connection, options, imports.isHeld),
      records,
      register: keyRegister(connection, options, keys),
    };
    expectedFile = files.database;
    return database;
  } catch (error) {
    connection.close();
    throw error;
  }
}

function isSteps(result: unknown): result is Steps<unknown> {
  return typeof result === 'object' && result !== null && Symbol.iterator in result && 'next' in result;
}

function dropConnection(): void {
  const dropped = database;
  database = undefined;
  try {
    dropped?.connection.close();
  } catch {
    // It is gone either way; the next call opens another.
  }
}
