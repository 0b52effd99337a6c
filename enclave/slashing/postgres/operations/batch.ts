// Locks and reads what a batch is judged by. The heads of its keys are locked first, in the order of the keys, and only
// later statements read the history and the record of the store: under READ COMMITTED a statement sees what was
// committed before it began, so a history read together with the lock would be older than the lock, and two signers
// could both find a vote safe. A key that is held for long is left out and does not hold up the others.

import { strict as assert } from 'node:assert';
import type { HistoryCodes } from '../../history/codes.ts';
import type { PublicKeyHex, SlashableMessage } from '../../types.ts';
import type { Connection } from '../connection/connections.ts';
import { BEGIN_BATCH, IMPORT_LOCK } from '../connection/transactions.ts';
import { addKeys } from '../tables/keys.ts';
import { plainArray } from '../tables/record.ts';
import { type BlockRow, HEAD_COLUMNS, type HeadRow, keyBytes, keyHex, type VoteRow } from '../tables/rows.ts';
import type { StoreReader, StoreReading } from '../tables/store.ts';

const SELECT_HEADS = `
  SELECT ${HEAD_COLUMNS} FROM strongroom.validators WHERE public_key = ANY ($1::bytea[]) ORDER BY public_key`;

interface LockStatement {
  readonly name: string;
  readonly text: string;
}
/** What nobody holds, without waiting. */
const LOCK_FREE: LockStatement = { name: 'lock_free', text: `${SELECT_HEADS} FOR UPDATE SKIP LOCKED` };
/** Everything, after others are done with it; fails after the lock timeout. */
const LOCK_ALL: LockStatement = { name: 'lock_all', text: `${SELECT_HEADS} FOR UPDATE` };

const LOOK_AROUND = `
  SELECT ARRAY(SELECT public_key FROM strongroom.validators WHERE public_key = ANY ($1::bytea[])) AS known,
         pg_try_advisory_xact_lock_shared($2) AS "noImport"`;
/** lock_not_available: the lock timeout has passed. */
const LOCK_TIMEOUT = '55P03';

// For each message its entry, and whatever is at the highest mark of its key or beyond. At the mark there must be an
// entry, beyond it none: so lost and brought-back rows are noticed where messages normally go.
const READ_BLOCKS = `
  SELECT m.position, b.slot, b.signing_root, b.code
  FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS m (public_key, slot, position)
  JOIN strongroom.validators v ON v.public_key = m.public_key
  CROSS JOIN LATERAL (
    (SELECT slot, signing_root, code FROM strongroom.blocks
     WHERE validator_id = v.id AND slot = m.slot AND slot < coalesce(v.highest_slot, 0))
    UNION ALL
    (SELECT slot, signing_root, code FROM strongroom.blocks
     WHERE validator_id = v.id AND slot >= coalesce(v.highest_slot, 0) ORDER BY slot DESC LIMIT 2)
  ) b`;

const READ_VOTES = `
  SELECT m.position, a.source_epoch, a.target_epoch, a.signing_root, a.code
  FROM unnest($1::bytea[], $2::bigint[]) WITH ORDINALITY AS m (public_key, target_epoch, position)
  JOIN strongroom.validators v ON v.public_key = m.public_key
  CROSS JOIN LATERAL (
    (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
     WHERE validator_id = v.id AND target_epoch = m.target_epoch
       AND target_epoch < coalesce(v.highest_target_epoch, 0))
    UNION ALL
    (SELECT source_epoch, target_epoch, signing_root, code FROM strongroom.attestations
     WHERE validator_id = v.id AND target_epoch >= coalesce(v.highest_target_epoch, 0)
     ORDER BY target_epoch DESC LIMIT 2)
  ) a`;

export interface BatchRows {
  readonly store: StoreReading;
  readonly heads: ReadonlyMap<PublicKeyHex, HeadRow>;
  /** By the place of the message in the batch. */
  readonly blocks: ReadonlyMap<number, readonly BlockRow[]>;
  readonly votes: ReadonlyMap<number, readonly VoteRow[]>;
  /** Keys without a head, while the list of keys is not the one of the record: theirs may have been deleted. */
  readonly missing: ReadonlySet<PublicKeyHex>;
}

/**
 * The rows of the keys that could be locked. Usually all are free, or about to be. An import holds its keys until it is
 * done: neither it, nor whoever holds a key for longer than the lock timeout, is waited for; such keys have no rows
 * here.
 */
export async function lockAndRead(
  connection: Connection,
  codes: HistoryCodes,
  store: StoreReader,
  messages: readonly SlashableMessage[],
): Promise<BatchRows> {
  const free = await readBatch(connection, store, messages, LOCK_FREE);
  if (free.heads.size === messages.length) return free;
  await connection.query('ROLLBACK');
  const keys = messages.map(({ publicKey }) => keyBytes(publicKey));
  const around = await connection.query<{ known: Buffer[]; noImport: boolean }>(LOOK_AROUND, [keys, IMPORT_LOCK]);
  const known = new Set(around.rows[0]?.known.map(keyHex));
  const added = messages.flatMap(({ publicKey }) => (known.has(publicKey) ? [] : [publicKey]));
  const outcome = added.length === 0 ? 'added' : await addKeys(connection, codes, store, added);
  const missing = new Set(outcome === 'added' ? [] : added);
  if (around.rows[0]?.noImport === true) {
    const all = await readBatch(connection, store, messages, LOCK_ALL).catch(undefinedAfterLockTimeout);
    if (all !== undefined && all.heads.size + missing.size < messages.length) {
      throw new Error('the head of a key that was added is not there');
    }
    if (all !== undefined) return { ...all, missing };
    await connection.query('ROLLBACK');
  }
  return { ...(await readBatch(connection, store, messages, LOCK_FREE)), missing };
}

function undefinedAfterLockTimeout(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === LOCK_TIMEOUT) return undefined;
  throw error;
}

/** Lock and read, sent at once and executed in order. */
async function readBatch(
  connection: Connection,
  store: StoreReader,
  messages: readonly SlashableMessage[],
  lock: LockStatement,
): Promise<BatchRows> {
  const publicKeys = messages.map(({ publicKey }) => keyBytes(publicKey));
  const blocks = [...messages.entries()].filter(([, { kind }]) => kind === 'block');
  const votes = [...messages.entries()].filter(([, { kind }]) => kind === 'attestation');
  const [, locked, reading, blockRows, voteRows] = await Promise.all([
    connection.query(BEGIN_BATCH),
    connection.query<HeadRow>({ ...lock, values: [publicKeys] }),
    store.read(connection),
    readEntries<BlockRow>(connection, 'read_blocks', READ_BLOCKS, blocks),
    readEntries<VoteRow>(connection, 'read_attestations', READ_VOTES, votes),
  ]);
  assert.equal(new Set(messages.map(({ publicKey }) => publicKey)).size, messages.length, 'a key is in a batch once');
  const heads = new Map(locked.rows.map((row) => [keyHex(row.public_key), row]));
  return { store: reading, heads, blocks: blockRows, votes: voteRows, missing: new Set() };
}

async function readEntries<Row extends object>(
  connection: Connection,
  name: string,
  text: string,
  messages: readonly (readonly [index: number, message: SlashableMessage])[],
): Promise<Map<number, Row[]>> {
  const found = new Map<number, Row[]>();
  if (messages.length === 0) return found;
  const publicKeys = messages.map(([, { publicKey }]) => keyBytes(publicKey));
  const places = messages.map(([, message]) => (message.kind === 'block' ? message.slot : message.targetEpoch));
  const { rows } = await connection.query<Row & { position: number }>({
    name,
    text,
    values: [publicKeys, plainArray(places)],
  });
  for (const row of rows) {
    const [index] = messages[row.position - 1] ?? [];
    assert(index !== undefined);
    const others = found.get(index);
    if (others === undefined) found.set(index, [row]);
    else others.push(row);
  }
  return found;
}
