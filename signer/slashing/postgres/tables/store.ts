// The record of the store, one row under its own code. Whoever deletes a head changes the list of keys, and then no key
// can be taken for a new one.

import { randomBytes } from 'node:crypto';
import { SignerError } from '../../../api/errors.ts';
import { type HistoryCodes, isPossible } from '../../history/codes.ts';
import type { IntegrityField } from '../../history/integrity.ts';
import { NEW_KEY } from '../../history/rules.ts';
import { NO_INCARNATION, STORE_ID_BYTES } from '../../incarnation.ts';
import type { StoreFloor, StoreIdentity } from '../../types.ts';
import { BEGIN, type Connection, commit } from '../connection/connections.ts';
import type { ServerIdentity, ServerPlace, ServerQuestions } from '../connection/server.ts';
import { digestsOf, execute } from './rows.ts';

export interface StoreRecord extends StoreIdentity {
  /** Within a process, an older record has a lower one. */
  readonly revision: number;
  readonly keys: KeyList;
  /** The server that the store was last raised on. */
  readonly server: ServerIdentity;
}

export interface KeyList {
  readonly count: number;
  /** SHA-256 of the public keys in ascending order. */
  readonly digest: Buffer;
}

export interface StoreReading {
  readonly record: StoreRecord;
  readonly place: ServerPlace;
}

interface StoreRow {
  readonly id: Buffer;
  readonly revision: number;
  readonly incarnation: string;
  readonly floor_slot: number | null;
  readonly floor_source_epoch: number | null;
  readonly floor_target_epoch: number | null;
  readonly keys: number;
  readonly keys_digest: Buffer;
  readonly system_identifier: string | null;
  readonly timeline: number | null;
  readonly code: Buffer;
  readonly timeline_now: number | null;
  readonly wal_position: number | null;
  readonly wal_flushed: number | null;
}

const LIST_KEYS = `
  SELECT count(*) AS count, sha256(coalesce(string_agg(public_key, '' ORDER BY public_key), '')) AS digest
  FROM strongroom.validators`;

const COLUMNS = [
  ...['id', 'revision', 'incarnation', 'floor_slot', 'floor_source_epoch', 'floor_target_epoch'],
  ...['keys', 'keys_digest', 'system_identifier', 'timeline', 'code'],
];
const INSERT_STORE = `
  INSERT INTO strongroom.store (${COLUMNS.join(', ')}) VALUES (${COLUMNS.map((_, at) => `$${at + 1}`).join(', ')})`;
const UPDATE_STORE = `UPDATE strongroom.store SET ${COLUMNS.map((name, at) => `${name} = $${at + 1}`).join(', ')}`;

function readText({ timeline, walPosition, walFlushed }: ServerQuestions): string {
  return `
    SELECT ${COLUMNS.join(', ')}, (${timeline})::bigint AS timeline_now,
           (${walPosition})::bigint AS wal_position, (${walFlushed})::bigint AS wal_flushed
    FROM strongroom.store`;
}

export type StoreReader = ReturnType<typeof storeReader>;

/** And what the server says of itself, in the same statement. */
export function storeReader(
  codes: HistoryCodes,
  questions: ServerQuestions,
  systemIdentifierOf: (connection: Connection) => Promise<string | null>,
) {
  const text = readText(questions);
  const ask = async (connection: Connection, name: string, sql: string): Promise<StoreReading> => {
    const identifier = systemIdentifierOf(connection);
    const { rows } = await connection.query<StoreRow>({ name, text: sql });
    const [row] = rows;
    if (row === undefined) throw damaged();
    return {
      record: openRow(codes, row),
      place: {
        systemIdentifier: await identifier,
        timeline: row.timeline_now,
        walPosition: row.wal_position,
        walFlushed: row.wal_flushed,
      },
    };
  };
  return {
    questions,
    read: (connection: Connection) => ask(connection, 'read_store', text),
    /** Locked against every other change of the record until the transaction ends. */
    lock: (connection: Connection) => ask(connection, 'lock_store', `${text} FOR UPDATE`),
  };
}

export async function createStore(connection: Connection, codes: HistoryCodes, server: ServerIdentity): Promise<void> {
  const keys = await listKeys(connection);
  const id = randomBytes(STORE_ID_BYTES).toString('hex');
  const record = { id, revision: 1, incarnation: NO_INCARNATION, floor: null, keys, server };
  await connection.query(INSERT_STORE, valuesOf(codes, record));
}

export async function writeStore(connection: Connection, codes: HistoryCodes, record: StoreRecord): Promise<void> {
  const values = valuesOf(codes, record);
  await execute(connection, { name: 'update_store', text: UPDATE_STORE, values, rowCount: 1 });
}

export async function listKeys(connection: Connection): Promise<KeyList> {
  const { rows } = await connection.query<KeyList>({ name: 'list_keys', text: LIST_KEYS });
  const [list] = rows;
  if (list === undefined) throw new Error('a count has a row');
  return list;
}

export function isSameList(one: KeyList, other: KeyList): boolean {
  return one.count === other.count && one.digest.equals(other.digest);
}

function openRow(codes: HistoryCodes, row: StoreRow): StoreRecord {
  const { floor_slot: slot, floor_source_epoch: sourceEpoch, floor_target_epoch: targetEpoch } = row;
  const isWhole = slot !== null && sourceEpoch !== null && targetEpoch !== null;
  const numbers = [row.revision, slot ?? 0, sourceEpoch ?? 0, targetEpoch ?? 0, row.keys, row.timeline ?? 0];
  const floor: StoreFloor | null = isWhole ? { slot, sourceEpoch, targetEpoch } : null;
  const record: StoreRecord = {
    id: row.id.toString('hex'),
    revision: row.revision,
    incarnation: row.incarnation,
    floor,
    keys: { count: row.keys, digest: row.keys_digest },
    server: { systemIdentifier: row.system_identifier, timeline: row.timeline },
  };
  if (!numbers.every(isPossible) || !row.code.equals(codes.storeCode(fieldsOf(record)))) throw damaged();
  return record;
}

function fieldsOf({ id, revision, incarnation, floor, keys, server }: StoreRecord): IntegrityField[] {
  const identifier = server.systemIdentifier;
  return [
    ...[Buffer.from(id, 'hex'), revision, Buffer.from(incarnation)],
    ...[floor?.slot ?? null, floor?.sourceEpoch ?? null, floor?.targetEpoch ?? null],
    ...[keys.count, keys.digest],
    ...[identifier === null ? null : Buffer.from(identifier, 'latin1'), server.timeline],
  ];
}

function valuesOf(codes: HistoryCodes, record: StoreRecord): unknown[] {
  const { id, revision, incarnation, floor, keys, server } = record;
  return [
    ...[Buffer.from(id, 'hex'), revision, incarnation],
    ...[floor?.slot ?? null, floor?.sourceEpoch ?? null, floor?.targetEpoch ?? null],
    ...[keys.count, keys.digest, server.systemIdentifier, server.timeline],
    codes.storeCode(fieldsOf(record)),
  ];
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
  const seals = keys.map((key) => codes.sealHead(key, NEW_KEY));
  const values = [keys, seals.map(digestsOf), seals.map(({ code }) => code)];
  const [, { record }, before, , after] = await Promise.all([
    connection.query(BEGIN),
    store.lock(connection),
    listKeys(connection),
    connection.query({ name: 'add_heads', text: ADD_HEADS, values }),
    listKeys(connection),
  ]);
  if (!isSameList(record.keys, before)) {
    await connection.query('ROLLBACK');
    return 'damaged';
  }
  await Promise.all([writeStore(connection, codes, { ...record, keys: after }), commit(connection)]);
  return 'added';
}
