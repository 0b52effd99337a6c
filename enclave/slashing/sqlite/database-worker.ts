// The worker that owns the database connection. It answers one call at a time, in order; each answer is a result or a
// failure, and a failure has left nothing half done. After a fault of the disk the connection is dropped and opened
// anew by the next call, so the worker recovers when the disk does.

import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../../observe/clock.ts';
import { rowIntegrity } from '../history/integrity.ts';
import type { CallMessage, DatabaseCall, DatabaseCalls, DatabaseWorkerData, ReplyMessage } from './calls.ts';
import { batchChecker, isDamage } from './check.ts';
import { heldExports } from './export.ts';
import { importer } from './import.ts';
import { pruner } from './prune.ts';
import { type DatabaseOptions, openDatabase } from './schema.ts';
import { packVerdicts, unpackBatch } from './wire.ts';

type Handlers = { [Name in DatabaseCall]: (arguments_: DatabaseCalls[Name][0]) => DatabaseCalls[Name][1] };

interface OpenDatabase {
  readonly connection: DatabaseSync;
  readonly check: ReturnType<typeof batchChecker>;
  readonly imports: ReturnType<typeof importer>;
  readonly prune: ReturnType<typeof pruner>;
}

if (parentPort === null) throw new Error('this file runs as a worker');
const port = parentPort;
const { path, genesisValidatorsRoot, integrityKey } = workerData as DatabaseWorkerData;
const options: DatabaseOptions = {
  path,
  genesisValidatorsRoot,
  integrity: rowIntegrity({ genesisValidatorsRoot, key: integrityKey }),
};
integrityKey?.fill(0);

let database: OpenDatabase | undefined;
const exports_ = heldExports(options, systemClock);

const handlers: Handlers = {
  open: () => {
    opened();
    return null;
  },
  check: ({ batch }) => packVerdicts(opened().check(unpackBatch(batch))),
  health: () => {
    // A batch without messages: it takes the write lock and gives it back.
    opened().check([]);
    opened().connection.prepare('SELECT id FROM metadata').get();
    return null;
  },
  stage: ({ importId, histories }) => {
    opened().imports.stage(importId, histories);
    return null;
  },
  merge: ({ importId, staged, asMinimal }) => opened().imports.merge(importId, staged, asMinimal),
  discard: ({ importId }) => {
    database?.imports.discard(importId);
    return null;
  },
  beginExport: ({ exportId, publicKeys }) => {
    opened();
    exports_.begin(exportId, publicKeys ?? undefined);
    return null;
  },
  continueExport: ({ exportId }) => exports_.next(exportId),
  endExport: ({ exportId }) => {
    exports_.end(exportId);
    return null;
  },
  prune: ({ afterId, maxEntries }) => opened().prune(afterId, maxEntries),
  status: () => {
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
  close: () => {
    exports_.endAll();
    database?.connection.close();
    database = undefined;
    options.integrity.wipe();
    return null;
  },
};

port.on('message', (message: CallMessage) => {
  port.postMessage(answer(message));
  if (message.call === 'close') port.close();
});

function answer({ id, call, arguments_ }: CallMessage): ReplyMessage {
  try {
    exports_.endStalled();
    // The main thread sends each call with the arguments of its name (calls.ts).
    return { id, result: handlers[call](arguments_ as never) };
  } catch (error) {
    if (isDamage(error)) return { id, reason: 'slashing_integrity', error };
    if (isFaultOfConnection(error)) dropConnection();
    return { id, reason: 'slashing_unavailable', error };
  }
}

function opened(): OpenDatabase {
  if (database !== undefined) return database;
  const connection = openDatabase(options);
  database = {
    connection,
    check: batchChecker(connection, options),
    imports: importer(connection, options),
    prune: pruner(connection, options),
  };
  return database;
}

// Primary result codes of SQLite (sqlite.org/rescode.html). After these the connection is as good as before.
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

function isFaultOfConnection(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false;
  const primary = error.errcode & 0xff;
  return primary !== SQLITE_BUSY && primary !== SQLITE_FULL;
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
