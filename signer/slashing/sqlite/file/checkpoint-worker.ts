// The worker that moves what is committed from the write-ahead log into the database file, on a connection of its own.
// A passive checkpoint takes no lock that a writer needs, and nothing depends on it: after a fault it begins again.

import type { DatabaseSync } from 'node:sqlite';
import { parentPort, workerData } from 'node:worker_threads';
import { openBesideWriter } from '../tables/schema.ts';

export interface CheckpointData {
  readonly path: string;
}

export type CheckpointRequest = 'checkpoint' | 'close';

export interface CheckpointReply {
  readonly error?: unknown;
}

if (parentPort === null) throw new Error('this file runs as a worker');
const port = parentPort;
const { path } = workerData as CheckpointData;
let connection: DatabaseSync | undefined;

port.on('message', (request: CheckpointRequest) => {
  if (request === 'checkpoint') {
    port.postMessage(checkpoint());
  } else {
    closeConnection();
    port.close();
  }
});

function checkpoint(): CheckpointReply {
  try {
    connection ??= openBesideWriter(path);
    connection.prepare('PRAGMA wal_checkpoint(PASSIVE)').get();
    return {};
  } catch (error) {
    closeConnection();
    return { error };
  }
}

function closeConnection(): void {
  try {
    connection?.close();
  } catch {
    // It is gone either way; the next checkpoint opens another.
  }
  connection = undefined;
}
