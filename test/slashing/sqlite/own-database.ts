// A slashing database of its own for each test, in a folder that goes with it, and somebody else who can write it.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach } from 'vitest';
import { openSqliteBackend } from '../../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { MAIN_ROOT, quietLog } from '../../support/slashing.ts';

export interface OwnDatabase {
  folder: string;
  /** What `open` opens; a test may name another file. */
  path: string;
  /** Closed after the test. */
  open(integrityKey?: Uint8Array): Promise<SlashingBackend>;
  /** Somebody writes the file, also while the signer runs. */
  tamper(...statements: string[]): void;
  /** Every row; numbers of any size. */
  query(statement: string): readonly unknown[];
}

/** Registers itself for every test of the file. */
export function ownDatabase(): OwnDatabase {
  const backends: SlashingBackend[] = [];
  const connected = <Result>(work: (connection: DatabaseSync) => Result): Result => {
    const connection = new DatabaseSync(own.path);
    try {
      return work(connection);
    } finally {
      connection.close();
    }
  };
  const own: OwnDatabase = {
    folder: '',
    path: '',
    async open(integrityKey) {
      const options = { path: own.path, genesisValidatorsRoot: MAIN_ROOT, integrityKey };
      const backend = await openSqliteBackend(options, { log: quietLog });
      backends.push(backend);
      return backend;
    },
    tamper: (...statements) =>
      connected((connection) => {
        for (const statement of statements) connection.exec(statement);
      }),
    query: (statement) =>
      connected((connection) => {
        const prepared = connection.prepare(statement);
        prepared.setReadBigInts(true);
        return prepared.all();
      }),
  };
  beforeEach(() => {
    own.folder = mkdtempSync(join(tmpdir(), 'slashing-sqlite-'));
    own.path = join(own.folder, 'slashing_protection.sqlite');
  });
  afterEach(async () => {
    for (const backend of backends.splice(0)) await backend.close();
    rmSync(own.folder, { recursive: true });
  });
  return own;
}
