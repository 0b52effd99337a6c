// The record of the store, one row under its own code. When a head is deleted, no key can be taken for a new one.

import { randomBytes } from 'node:crypto';
import { SignerError } from '../../../api/errors.ts';
import { type HistoryCodes, isPossible } from '../../history/codes.ts';
import { NEW_KEY } from '../../history/head.ts';
import { NO_INCARNATION, STORE_ID_BYTES } from '../../incarnation.ts';
import type { StoreIdentity } from '../../types.ts';
import { BEGIN, type Connection, commit, prepared } from '../connection/connections.ts';
import { databaseOf, type ServerIdentity, type ServerPlace, type ServerQuestions } from '../connection/server.ts';
import { execute } from './rows.ts';

export interface PostgresStoreRecord extends StoreIdentity {
  /** Within a process, an older record has a lower one. */
  readonly revision: number;
  readonly keys: KeyListDigest;
  /** The server that the store was last raised on. */
  readonly server: ServerIdentity;
}

interface KeyListDigest {
  readonly count: number;
  /** SHA-256 of the public keys in ascending order. */
  readonly digest: Buffer;
}

export interface StoreReading {
  readonly record: PostgresStoreRecord;
  readonly place: ServerPlace;
}

type FloorColumn = 'floor_slot' | 'floor_source_epoch' | 'floor_target_epoch';
type PlaceColumn = 'timeline' | 'timeline_now' | 'wal_position' | 'wal_flushed';
type StoreRow = Readonly<
  Record<'id' | 'keys_digest' | 'code', Buffer> &
    Record<'revision' | 'keys', number> &
    Record<'incarnation' | 'objects' | 'table', string> &
    Record<FloorColumn | PlaceColumn, number | null> & { system_identifier: string | null }
>;

const LIST_KEYS = `
  SELECT count(*) AS count, sha256(coalesce(string_agg(public_key, '' ORDER BY public_key), '')) AS digest
  FROM strongroom.validators`;

const CELLS = [
  ...(['id', 'revision', 'incarnation', 'floor_slot', 'floor_source_epoch', 'floor_target_epoch'] as const),
  ...(['keys', 'keys_digest', 'system_identifier', 'objects', 'timeline'] as const),
];
const COLUMNS = [...CELLS, 'code'];
const INSERT_STORE = `
  INSERT INTO strongroom.store (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((_, at) => `$${at + 1}`).join(', ')})`;
const UPDATE_STORE = `UPDATE strongroom.store SET ${COLUMNS.map((name, at) => `${name} = $${at + 1}`).join(', ')}`;

function readText({ timeline, walPosition, walFlushed }: ServerQuestions): string {
  return `
    SELECT ${COLUMNS.join(', ')}, tableoid::text AS "table", (${timeline})::bigint AS timeline_now,
           (${walPosition})::bigint AS wal_position, (${walFlushed})::bigint AS wal_flushed
    FROM strongroom.store`;
}

export type StoreReader = ReturnType<typeof storeReader>;

/** And what the server says of itself, in the same statement. */
export function storeReader(codes: HistoryCodes, questions: ServerQuestions) {
  const text = readText(questions);
  const ask = async (connection: Connection, sql: string): Promise<StoreReading> => {
    const asked = databaseOf(connection, questions);
    const { rows } = await prepared<StoreRow>(connection, sql);
    const [row] = rows;
    if (row === undefined) throw damaged();
    const { systemIdentifier, database } = await asked;
    return {
      record: openRow(codes, row),
      place: {
        systemIdentifier,
        objects: `${database}/${row.table}`,
        timeline: row.timeline_now,
        walPosition: row.wal_position,
        walFlushed: row.wal_flushed,
      },
    };
  };
  return {
    questions,
    read: (connection: Connection) => ask(connection, text),
    /** Locked against every other change of the record until the transaction ends. */
    lock: (connection: Connection) => ask(connection, `${text} FOR UPDATE`),
  };
}

export async function createStore(connection: Connection, codes: HistoryCodes, server: ServerIdentity): Promise<void> {
  const keys = await digestKeys(connection);
  const id = randomBytes(STORE_ID_BYTES).toString('hex');
  const record = { id, revision: 1, incarnation: NO_INCARNATION, floor: null, keys, server };
  await connection.query(INSERT_STORE, valuesOf(codes, record));
}

export async function writeStore(
  connection: Connection,
  codes: HistoryCodes,
  record: PostgresStoreRecord,
): Promise<void> {
  const values = valuesOf(codes, record);
  await execute(connection, { text: UPDATE_STORE, values, rowCount: 1 });
}

export async function digestKeys(connection: Connection): Promise<KeyListDigest> {
  const { rows } = await prepared<KeyListDigest>(connection, LIST_KEYS);
  const [list] = rows;
  if (list === undefined) throw new Error('a count has a row');
  return list;
}

export function isSameList(one: KeyListDigest, other: KeyListDigest): boolean {
  return one.count === other.count && one.digest.equals(other.digest);
}

function openRow(codes: HistoryCodes, row: StoreRow): PostgresStoreRecord {
  const { floor_slot: slot, floor_source_epoch: sourceEpoch, floor_target_epoch: targetEpoch } = row;
  const isWhole = slot !== null && sourceEpoch !== null && targetEpoch !== null;
  const record: PostgresStoreRecord = {
    id: row.id.toString('hex'),
    revision: row.revision,
    incarnation: row.incarnation,
    floor: isWhole ? { slot, sourceEpoch, targetEpoch } : null,
    keys: { count: row.keys, digest: row.keys_digest },
    server: { systemIdentifier: row.system_identifier, objects: row.objects, timeline: row.timeline },
  };
  const arePossible = CELLS.every((name) => typeof row[name] === 'string' || isPossible(row[name]));
  if (!arePossible || !row.code.equals(codeOf(codes, cellsOf(record)))) throw damaged();
  return record;
}

type Cell = Buffer | string | number | null;

/** In the order of CELLS. */
function cellsOf({ id, revision, incarnation, floor, keys, server }: PostgresStoreRecord): Cell[] {
  return [
    ...[Buffer.from(id, 'hex'), revision, incarnation],
    ...[floor?.slot ?? null, floor?.sourceEpoch ?? null, floor?.targetEpoch ?? null],
    ...[keys.count, keys.digest, server.systemIdentifier, server.objects, server.timeline],
  ];
}

function codeOf(codes: HistoryCodes, cells: readonly Cell[]): Uint8Array {
  return codes.storeCode(cells.map((cell) => (typeof cell === 'string' ? Buffer.from(cell) : cell)));
}

function valuesOf(codes: HistoryCodes, record: PostgresStoreRecord): unknown[] {
  const cells = cellsOf(record);
  return [...cells, codeOf(codes, cells)];
}

function damaged(): SignerError {
  const hint = 'the record of the slashing store fails its code, or is gone: nothing is signed over it';
  return new SignerError('slashing_integrity', { hint });
}

// A key whose head was deleted is damage and not a new key.

const ADD_HEADS = `
  INSERT INTO strongroom.validators (public_key, digests, code)
  SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[]) AS new (public_key, digests, code) ORDER BY public_key
  ON CONFLICT (public_key) DO NOTHING`;

/**
 * In a transaction of its own: it holds the record of the store for a moment only.
 * `damaged`: the keys that are there are not those of the record, and none was added.
 */
export async function addKeys(
  connection: Connection,
  codes: HistoryCodes,
  store: StoreReader,
  keys: readonly Uint8Array[],
): Promise<'added' | 'damaged'> {
  const headCodes = keys.map((key) => codes.headCode(key, NEW_KEY));
  const values = [keys, headCodes.map(({ digests }) => digests), headCodes.map(({ code }) => code)];
  const [, { record }, before, , after] = await Promise.all([
    connection.query(BEGIN),
    store.lock(connection),
    digestKeys(connection),
    prepared(connection, ADD_HEADS, values),
    digestKeys(connection),
  ]);
  if (!isSameList(record.keys, before)) {
    await connection.query('ROLLBACK');
    return 'damaged';
  }
  await Promise.all([writeStore(connection, codes, { ...record, keys: after }), commit(connection)]);
  return 'added';
}
