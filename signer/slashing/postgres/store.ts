// The rows of the database as a complete store, on one connection: after a rejection it has to be closed. Heads are
// locked before other statements read what a change rests on.

import { SignerError } from '../../api/errors.ts';
import { chunks, type Turns } from '../../parallel.ts';
import type { Coded } from '../history/codes.ts';
import { lowestOf } from '../history/head.ts';
import type { CodedEntries } from '../history/merge.ts';
import { GATHERED_EPOCHS, RETAINED_EPOCHS, RETAINED_SLOTS } from '../history/prune.ts';
import { identityOf } from '../incarnation.ts';
import { readPart, type StagedText } from '../operations/import-text.ts';
import {
  type CompleteStore,
  HEADS_ARE_GONE,
  type Head,
  type KeyChange,
  keyBytes,
  keyHex,
  type Rows,
  type StagedImport,
  type WritableRows,
} from '../operations/store.ts';
import type { StoreFloor, StoreIdentity } from '../types.ts';
import type { CheckTools } from './check.ts';
import { BEGIN, BEGIN_IMPORT, BEGIN_JUMP, type Connection, commit, prepared } from './connection/connections.ts';
import {
  blockTable,
  execute,
  type HeadRow,
  openHeadRow,
  SELECT_HEADS,
  type SqlStatement,
  updateHeads,
  voteTable,
} from './tables/rows.ts';
import {
  addKeys,
  digestKeys,
  isSameList,
  type PostgresStoreRecord,
  type StoreReading,
  writeStore,
} from './tables/store.ts';

const BEGIN_SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY';

const COUNT_HEADS = 'SELECT count(*) AS count FROM strongroom.validators WHERE public_key = ANY ($1::bytea[])';

const keysAfter = (chosen: string) => `
  SELECT public_key, (${chosen}) IS TRUE AS chosen
  FROM (SELECT * FROM strongroom.validators WHERE public_key > $1 ORDER BY public_key LIMIT $2) AS page
  ORDER BY public_key`;
const KEYS_AFTER = {
  all: keysAfter('true'),
  prunable: keysAfter(
    `low_water_slot < highest_slot - ${RETAINED_SLOTS} OR
     low_water_target_epoch < highest_target_epoch - ${RETAINED_EPOCHS + GATHERED_EPOCHS}`,
  ),
};

/** Preparing them takes a few milliseconds. */
const CHUNK_ROWS = 2_000;
const PARTS_AT_ONCE = 4;

export function postgresStore(connection: Connection, tools: CheckTools, { turn }: Turns): CompleteStore {
  const { codes, store, lineage } = tools;
  return {
    codes,
    turn,

    async snapshot() {
      await connection.query(BEGIN_SNAPSHOT);
      const close = async () => void (await connection.query('ROLLBACK').catch(() => undefined));
      return { ...readableRows(connection, tools, turn, ''), close };
    },

    async transaction(work, ofImport = false) {
      const [, result] = await Promise.all([
        connection.query(ofImport ? BEGIN_IMPORT : BEGIN),
        work(writableRows(connection, tools, turn)),
      ]);
      await commit(connection);
      return result;
    },

    async addKeys(publicKeys) {
      const { rows } = await connection.query<{ count: number }>(COUNT_HEADS, [publicKeys]);
      if (rows[0]?.count === publicKeys.length) return;
      if ((await addKeys(connection, codes, store, publicKeys)) === 'added') return;
      throw new SignerError('slashing_integrity', { hint: HEADS_ARE_GONE });
    },

    async changeRecord(change, isJump) {
      const [begin, expected] = [isJump ? BEGIN_JUMP : BEGIN, lineage.known];
      const [, reading] = await Promise.all([connection.query(begin), store.lock(connection)]);
      const before = identityOf(reading.record);
      const after = change(before);
      if (isJump && after.floor !== null) return raise(connection, tools, reading, after.floor);
      const { record, place } = reading;
      const written = after === before ? record : { ...record, ...after, revision: record.revision + 1 };
      if (written !== record) await writeStore(connection, codes, written);
      await commit(connection);
      lineage.doubt(expected, place, written);
      return after;
    },
  };
}

/** Each reading is remembered: a signer of which nothing was asked answers by it what is asked next. */
export async function look(connection: Connection, { store, lineage }: CheckTools) {
  const expected = lineage.known;
  const { record, place } = await store.read(connection);
  return { record, doubt: lineage.doubt(expected, place, record) };
}

function readableRows(connection: Connection, tools: CheckTools, turn: Turns['turn'], lock: string): Rows {
  const { codes, store } = tools;
  return {
    record: async () => identityOf((await look(connection, tools)).record),
    async isKeyListWhole() {
      const [{ record }, list] = await Promise.all([store.read(connection), digestKeys(connection)]);
      return isSameList(record.keys, list);
    },
    async heads(publicKeys) {
      const found = await prepared<HeadRow>(connection, `${SELECT_HEADS} ${lock}`, [publicKeys]);
      return found.rows.map((row) => headOf(codes, row));
    },
    async keysAfter(last, limit, chosen) {
      const found = await connection.query<{ public_key: Buffer; chosen: boolean }>(KEYS_AFTER[chosen], [last, limit]);
      const keys = found.rows.filter((row) => row.chosen).map((row) => row.public_key);
      return { keys, last: found.rows.length < limit ? undefined : found.rows.at(-1)?.public_key };
    },
    async history(head, sink) {
      const areWhole = await Promise.all([
        blockTable.readAll(connection, codes, head, sink.block, turn),
        voteTable.readAll(connection, codes, head, sink.vote, turn),
      ]);
      if (areWhole.includes(false)) throw damaged(head);
    },
    async blockAt(head, slot) {
      return undamaged(head, await blockTable.at(connection, codes, head, slot))[0];
    },
  };
}

function writableRows(connection: Connection, tools: CheckTools, turn: Turns['turn']): WritableRows {
  const { codes } = tools;
  return {
    ...readableRows(connection, tools, turn, 'FOR UPDATE'),

    async oldest(head, below, limit) {
      const blocks = undamaged(head, await blockTable.oldest(connection, codes, head, below.slot, limit));
      const places = limit - blocks.length;
      const attestations = undamaged(head, await voteTable.oldest(connection, codes, head, below.targetEpoch, places));
      const [keptBlocks, keptVotes] = await Promise.all([
        blockTable.lowestAfter(connection, codes, head, blocks.at(-1)),
        voteTable.lowestAfter(connection, codes, head, attestations.at(-1)),
      ]);
      const lowestKept = lowestOf({ blocks: undamaged(head, keptBlocks), attestations: undamaged(head, keptVotes) });
      return { blocks, attestations, lowestKept };
    },

    async change(head, change) {
      const statements = statementsOf(codes, head, change);
      await Promise.all(
        statements.map(async (statement) => {
          if (statements.length > 1) await turn(statement.rowCount);
          await execute(connection, statement);
        }),
      );
    },
  };
}

function statementsOf(
  codes: CheckTools['codes'],
  head: Head,
  { state, added = NONE, replaced = NONE, removed = NONE }: KeyChange,
): SqlStatement[] {
  const { id } = head;
  const named = <Entry>(entries: readonly Entry[]) => entries.map((entry) => ({ id, entry }));
  return [
    ...chunks(removed.blocks, CHUNK_ROWS).map((chunk) => blockTable.remove(id, chunk)),
    ...chunks(removed.attestations, CHUNK_ROWS).map((chunk) => voteTable.remove(id, chunk)),
    ...chunks(replaced.blocks, CHUNK_ROWS).map((chunk) => blockTable.replace(id, chunk)),
    ...chunks(replaced.attestations, CHUNK_ROWS).map((chunk) => voteTable.replace(id, chunk)),
    ...chunks(added.blocks, CHUNK_ROWS).map((chunk) => blockTable.insert(named(chunk))),
    ...chunks(added.attestations, CHUNK_ROWS).map((chunk) => voteTable.insert(named(chunk))),
    updateHeads(codes, [{ head, state }]),
  ];
}

const NONE: CodedEntries = { blocks: [], attestations: [] };

function headOf(codes: CheckTools['codes'], row: HeadRow): Head {
  const state = openHeadRow(codes, row);
  if (state === undefined) throw damaged({ publicKey: row.public_key });
  return { id: row.id, publicKey: row.public_key, state };
}

function undamaged<Entry>(head: Head, read: Coded<Entry>[] | undefined): Coded<Entry>[] {
  if (read === undefined) throw damaged(head);
  return read;
}

function damaged({ publicKey }: Pick<Head, 'publicKey'>): SignerError {
  return new SignerError('slashing_integrity', { detail: { public_key: keyHex(publicKey) } });
}

const CREATE_STAGED = `
  CREATE TEMPORARY TABLE IF NOT EXISTS staged
    (public_key bytea NOT NULL, part text NOT NULL, place bigint GENERATED ALWAYS AS IDENTITY)`;
const INDEX_STAGED = 'CREATE INDEX ON staged (public_key, place); ANALYZE staged';
const STAGE = 'INSERT INTO staged (public_key, part) VALUES ($1, $2)';
const STAGED_KEYS = `
  SELECT DISTINCT public_key FROM staged WHERE public_key > $1 ORDER BY public_key LIMIT $2`;
const STAGED_PARTS = `
  SELECT part, place FROM staged WHERE public_key = $1 AND place > $2 ORDER BY place LIMIT ${PARTS_AT_ONCE}`;

export async function stage(connection: Connection, parts: readonly StagedText[]): Promise<void> {
  await connection.query(CREATE_STAGED);
  const values = parts.map(([publicKey, part]) => [keyBytes(publicKey), part]);
  await Promise.all(values.map((row) => prepared(connection, STAGE, row)));
}

export async function stagedOn(connection: Connection): Promise<StagedImport> {
  await connection.query(`${CREATE_STAGED}; ${INDEX_STAGED}`);
  return {
    async keysAfter(last, limit) {
      const { rows } = await connection.query<{ public_key: Buffer }>(STAGED_KEYS, [last, limit]);
      return rows.map((row) => row.public_key);
    },
    async *parts(publicKey) {
      for (let last = 0; ; ) {
        const values = [publicKey, last];
        const { rows } = await prepared<{ part: string; place: number }>(connection, STAGED_PARTS, values);
        for (const { part } of rows) yield readPart(part);
        last = rows.at(-1)?.place ?? last;
        if (rows.length < PARTS_AT_ONCE) return;
      }
    },
  };
}

async function raise(
  connection: Connection,
  { codes, lineage }: CheckTools,
  { record, place }: StoreReading,
  floor: StoreFloor,
): Promise<StoreIdentity> {
  const { systemIdentifier, objects, timeline } = place;
  const server = { systemIdentifier, objects, timeline };
  const raised: PostgresStoreRecord = { ...record, revision: record.revision + 1, floor, server };
  await Promise.all([writeStore(connection, codes, raised), commit(connection)]);
  lineage.adopt(place, raised);
  return identityOf(raised);
}
