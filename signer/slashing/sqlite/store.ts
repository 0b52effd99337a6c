// The rows of the database as a complete store (operations/store.ts): one connection writes, and every snapshot is a
// connection of its own. Nothing else runs inside a transaction, because none waits for a turn of the event loop.

import type { DatabaseSync } from 'node:sqlite';
import type { Clock } from '../../../common/observe/clock.ts';
import type { Turns } from '../../parallel.ts';
import { historyCodes } from '../history/codes.ts';
import type { CodedEntries } from '../history/merge.ts';
import { NEW_KEY } from '../history/rules.ts';
import { readPart, type StagedText, writePart } from '../operations/import.ts';
import {
  type CompleteStore,
  isDamaged,
  type KeyChange,
  keyBytes,
  type Rows,
  STEP_ENTRIES,
  type StagedImport,
  type WritableRows,
} from '../operations/store.ts';
import type { PublicKeyHex, ValidatorHistory } from '../types.ts';
import type { OpenFiles } from './file/file.ts';
import { identityOf, type KeyList, storeRecord, withKeys } from './tables/record.ts';
import { bytesOf, damaged, entryTables, headTable, inTransaction, isDamage, numberOf } from './tables/rows.ts';
import { beginSnapshot, type DatabaseOptions, IS_PRUNABLE, openReader } from './tables/schema.ts';

const MAX_IDLE = 2;

interface DatabaseStoreParts {
  readonly connection: DatabaseSync;
  readonly options: DatabaseOptions;
  readonly files: Pick<OpenFiles, 'confirm'>;
  readonly keys: KeyList;
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
        const { incarnation, floor } = change(identityOf(record));
        const changed = { ...record, incarnation, floor };
        records.write(changed);
        return changed;
      });
      files.confirm();
      return identityOf(after);
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
    record: async () => identityOf(records.read()),
    isKeyListWhole: async () => records.isWhole(records.read()),
    heads: async (publicKeys) =>
      publicKeys.map((key) => verified(() => heads.find(key))).filter((head) => head !== undefined),
    async keysAfter(last, limit, chosen) {
      const keys = pages[chosen].all(last, limit).map((row) => bytesOf(row['public_key']));
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

// Histories that an import has brought and that are not merged yet. What is there when the database is opened is of an
// import that ended before its time, which is repeated: it is removed.

const PAGE_ROWS = 50;

export function stagedHistories(connection: DatabaseSync, { integrity }: Pick<DatabaseOptions, 'integrity'>) {
  const codes = historyCodes(integrity);
  const insert = connection.prepare(
    'INSERT INTO staged (id, import_id, public_key, history, code) VALUES (?, ?, ?, ?, ?)',
  );
  const count = connection.prepare('SELECT count(*) AS count FROM staged WHERE import_id = ?');
  const nextKeys = connection.prepare(
    `SELECT DISTINCT public_key FROM staged INDEXED BY staged_keys WHERE import_id = ? AND public_key > ?
     ORDER BY public_key LIMIT ?`,
  );
  const nextPart = connection.prepare(
    'SELECT id, history, code FROM staged WHERE import_id = ? AND public_key = ? AND id > ? ORDER BY id LIMIT 1',
  );
  const removePage = connection.prepare(
    `DELETE FROM staged WHERE id IN (SELECT id FROM staged WHERE import_id = ? LIMIT ${PAGE_ROWS})`,
  );
  const lastId = connection.prepare('SELECT max(id) AS id FROM staged');
  const codeOf = (id: number, importId: number, publicKey: Uint8Array, history: string): Uint8Array =>
    codes.storeCode([id, importId, publicKey, Buffer.from(history)]);

  return {
    add(importId: number, parts: readonly StagedText[]): void {
      let id = Number(lastId.get()?.['id'] ?? 0);
      for (const [key, history] of parts) {
        const publicKey = keyBytes(key);
        id += 1;
        insert.run(id, importId, publicKey, history, codeOf(id, importId, publicKey, history));
      }
    },
    count: (importId: number) => Number(count.get(importId)?.['count']),
    of: (importId: number): StagedImport => ({
      keysAfter: async (last, limit) => nextKeys.all(importId, last, limit).map((row) => bytesOf(row['public_key'])),
      async *parts(publicKey) {
        for (let after = 0; ; ) {
          const row = nextPart.get(importId, publicKey, after);
          if (row === undefined) return;
          const history = String(row['history']);
          after = numberOf(row['id']);
          const code = codeOf(after, importId, publicKey, history);
          if (Buffer.compare(bytesOf(row['code']), code) !== 0) throw damaged('staged');
          yield readPart(history);
        }
      },
    }),
    removeSome: (importId: number) => removePage.run(importId).changes > 0,
    removeAll: () => connection.exec('DELETE FROM staged'),
  };
}

// The exports under way, by their numbers, in pieces as the main thread asks for them. While one is open, the
// write-ahead log keeps all that is written after it: one whose reader is gone ends with the next call of any other.

const ANSWER_VALIDATORS = 200;
const MAX_EXPORTS = 128;
export const EXPORT_STALL_MS = 60_000;

type Histories = AsyncGenerator<ValidatorHistory>;

interface HeldExport {
  readonly histories: Histories;
  askedAt: number;
  isReading: boolean;
}

export function heldExports(
  open: (publicKeys: readonly PublicKeyHex[] | undefined) => Histories,
  clock: Pick<Clock, 'monotonic'>,
) {
  const held = new Map<number, HeldExport>();

  async function end(exportId: number): Promise<void> {
    const one = held.get(exportId);
    held.delete(exportId);
    await one?.histories.return(undefined).catch(() => undefined); // it is gone either way
  }

  return {
    held: held as { readonly size: number },
    begin(exportId: number, publicKeys: readonly PublicKeyHex[] | undefined): void {
      if (held.size >= MAX_EXPORTS) throw new Error('too many exports are under way');
      held.set(exportId, { histories: open(publicKeys), askedAt: clock.monotonic(), isReading: false });
    },
    async next(exportId: number): Promise<StagedText[]> {
      const one = held.get(exportId);
      if (one === undefined) throw new Error('the export is over');
      one.isReading = true;
      const answer: StagedText[] = [];
      try {
        for (let entries = 0; answer.length < ANSWER_VALIDATORS && entries < STEP_ENTRIES; ) {
          const { done, value } = await one.histories.next();
          if (done === true) break;
          answer.push([value.publicKey, writePart(value)]);
          entries += 1 + value.blocks.length + value.attestations.length;
        }
      } finally {
        one.isReading = false;
        one.askedAt = clock.monotonic();
      }
      return answer;
    },
    end,
    async endStalled(): Promise<void> {
      for (const [exportId, { askedAt, isReading }] of held) {
        if (!isReading && clock.monotonic() - askedAt > EXPORT_STALL_MS) await end(exportId);
      }
    },
    async endAll(): Promise<void> {
      for (const exportId of held.keys()) await end(exportId);
    },
  };
}
