// The rows of the database as a complete store (operations/store.ts): one connection writes, and every snapshot is a
// connection of its own. Nothing else runs inside a transaction, because none waits for a turn of the event loop.

import type { DatabaseSync } from 'node:sqlite';
import type { Turns } from '../../parallel.ts';
import { historyCodes } from '../history/codes.ts';
import { NEW_KEY } from '../history/head.ts';
import type { CodedEntries } from '../history/merge.ts';
import { type CompleteStore, isDamaged, type KeyChange, type Rows, type WritableRows } from '../operations/store.ts';
import type { OpenFiles } from './file/open-files.ts';
import type { KnownKeys } from './tables/key-list.ts';
import { sqliteIdentity, storeRecord, withKeys } from './tables/record.ts';
import { damaged, entryTables, headTable, inTransaction, isDamage, requiredBytes } from './tables/rows.ts';
import { beginSnapshot, type DatabaseOptions, IS_PRUNABLE, openReader } from './tables/schema.ts';

const MAX_IDLE = 2;

interface DatabaseStoreParts {
  readonly connection: DatabaseSync;
  readonly options: DatabaseOptions;
  readonly files: Pick<OpenFiles, 'confirm'>;
  readonly keys: KnownKeys;
  readonly turns: Turns;
}

export interface DatabaseStore extends CompleteStore {
  /** The connections of snapshots; the writer is its opener's. */
  close(): void;
}

export function databaseStore({ connection, options, files, keys, turns }: DatabaseStoreParts): DatabaseStore {
  const codes = historyCodes(options.integrity);
  const records = storeRecord(connection, options);
  const heads = headTable(connection, options.integrity);
  const rows = writableRows(connection, options);
  const snapshots = snapshotPool(options, turns);

  return {
    codes,
    turn: turns.turn,

    async snapshot() {
      const snapshot = snapshots.open();
      try {
        files.confirm();
      } catch (error) {
        await snapshot.close();
        throw error;
      }
      return snapshot;
    },

    async transaction(work) {
      connection.exec('BEGIN IMMEDIATE');
      try {
        const result = await work(rows);
        connection.exec('COMMIT');
        files.confirm();
        return result;
      } catch (error) {
        if (connection.isTransaction) connection.exec('ROLLBACK');
        throw named(error, 'a row is in the way');
      }
    },

    async addKeys(publicKeys) {
      const { added, record } = inTransaction(connection, () => {
        const before = records.read();
        const added = publicKeys.filter((publicKey) => heads.find(publicKey) === undefined);
        for (const publicKey of added) {
          keys.confirmNew(publicKey, before);
          heads.insert({ id: heads.nextId(), publicKey, state: NEW_KEY });
        }
        const record = withKeys(before, added);
        if (added.length > 0) records.write(record);
        return { added, record };
      });
      if (added.length > 0) keys.added(added, record);
      files.confirm();
    },

    /** One worker decides batches one after the other: none that began before is undecided. */
    async changeRecord(change) {
      const after = inTransaction(connection, () => {
        const record = records.read();
        const { incarnation, floor } = change(sqliteIdentity(record));
        const changed = { ...record, incarnation, floor };
        records.write(changed);
        return changed;
      });
      files.confirm();
      return sqliteIdentity(after);
    },

    close: snapshots.close,
  };
}

function readableRows(connection: DatabaseSync, options: DatabaseOptions, turn: Turns['turn'] | undefined): Rows {
  const records = storeRecord(connection, options);
  const heads = headTable(connection, options.integrity);
  const entries = entryTables(connection, options.integrity);
  const page = (chosen: string) =>
    connection.prepare(
      `SELECT public_key FROM validators WHERE ${chosen} AND public_key > ? ORDER BY public_key LIMIT ?`,
    );
  const pages = { all: page('TRUE'), prunable: page(IS_PRUNABLE) };
  return {
    record: async () => sqliteIdentity(records.read()),
    isKeyListWhole: async () => records.isWhole(records.read()),
    heads: async (publicKeys) =>
      publicKeys.map((key) => verified(() => heads.find(key))).filter((head) => head !== undefined),
    async keysAfter(last, limit, chosen) {
      const keys = pages[chosen].all(last, limit).map((row) => requiredBytes(row['public_key']));
      return { keys, last: keys.length < limit ? undefined : keys.at(-1) };
    },
    async history(head, sink) {
      for (const size of entries.read(head, sink)) if (turn !== undefined) await turn(size);
    },
    blockAt: async (head, slot) => entries.blocks.at(head, slot)[0],
  };
}

/** A number that this program never writes is damage of the row, as a wrong code is. */
function verified<Read>(read: () => Read): Read {
  try {
    return read();
  } catch (error) {
    throw named(error, 'a number is too large');
  }
}

/** Damage that only SQLite or Node.js has noticed, as damage of a row. */
function named(error: unknown, row: string): unknown {
  return isDamage(error) && !isDamaged(error) ? damaged(row) : error;
}

function writableRows(connection: DatabaseSync, options: DatabaseOptions): WritableRows {
  const heads = headTable(connection, options.integrity);
  const entries = entryTables(connection, options.integrity);

  return {
    ...readableRows(connection, options, undefined),
    oldest: async (head, below, limit) =>
      verified(() => {
        const blocks = entries.blocks.below(head, below.slot, limit);
        const attestations = entries.votes.below(head, below.targetEpoch, limit - blocks.length);
        return { blocks, attestations, lowestKept: entries.lowestBeyond(head, blocks.at(-1), attestations.at(-1)) };
      }),
    async change(head, { state, added = NONE, replaced = NONE, removed = NONE }: KeyChange) {
      // After some faults SQLite itself rolls back: each statement would be a commit of its own.
      if (!connection.isTransaction) throw new Error('SQLite has rolled the transaction back');
      for (const { blocks, attestations } of [removed, replaced]) {
        for (const block of blocks) entries.blocks.remove(head.id, block);
        for (const vote of attestations) entries.votes.remove(head.id, vote);
      }
      for (const { blocks, attestations } of [replaced, added]) {
        for (const block of blocks) entries.blocks.insert(head.id, block, block);
        for (const vote of attestations) entries.votes.insert(head.id, vote, vote);
      }
      heads.update({ ...head, state });
    },
  };
}

const NONE: CodedEntries = { blocks: [], attestations: [] };

/** Preparing the statements of a connection costs more than most snapshots, so a few connections stay open. */
function snapshotPool(options: DatabaseOptions, { turn }: Turns) {
  type Idle = { readonly connection: DatabaseSync; readonly rows: Rows };
  const idle: Idle[] = [];
  let isClosed = false;

  function connect(): Idle {
    const connection = openReader(options.path);
    return { connection, rows: readableRows(connection, options, turn) };
  }

  return {
    open() {
      const one = idle.pop() ?? connect();
      beginSnapshot(one.connection);
      return {
        ...one.rows,
        async close() {
          if (isClosed || idle.length >= MAX_IDLE) one.connection.close();
          else {
            one.connection.exec('COMMIT');
            idle.push(one);
          }
        },
      };
    },
    close(): void {
      isClosed = true;
      for (const { connection } of idle.splice(0)) connection.close();
    },
  };
}
