// Reads the slashing protection database of a Web3Signer (PostgreSQL, its schema versions 7 to 12), as one stream of
// histories from one read-only snapshot: whatever it holds was true at one moment. Entries come through a cursor and
// are folded to the last ones of each key (signer/slashing/interchange/reduce.ts), so memory does not grow with the
// database. It trusts nothing of it: another network, another schema, a value that no signer writes, and a program that
// still uses the database refuse it as a whole. It throws inside the stream, so that the import that reads it undoes
// everything.

import { setTimeout as pause } from 'node:timers/promises';
import { encodeHex } from '../../common/formats/hex.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { type HistoryReducer, historyReducer } from '../../signer/slashing/interchange/reduce.ts';
import type {
  Connection,
  PostgresConnections,
  UnhurriedSession,
} from '../../signer/slashing/postgres/connection/connections.ts';
import type { ImportOptions, ImportSummary, SlashingBackend, ValidatorHistory } from '../../signer/slashing/types.ts';
import { assertUnused, lookAt } from './in-use.ts';
import { checkSchema, type HighWatermark, Web3SignerDatabaseError } from './schema.ts';

interface Web3SignerOptions {
  /** 32 bytes: the network that the database must be of. */
  readonly genesisValidatorsRoot: Uint8Array;
  /** The first look at what a signer would change, and the last one, are at least this far apart. */
  readonly looksApartMs: number;
}

/** What the database said; complete when the stream has ended. */
export interface Web3SignerFindings {
  readonly lowWatermarks: number;
  readonly highWatermark: HighWatermark;
  /** Keys that Web3Signer refuses to sign with (`validators.enabled`). */
  readonly disabled: readonly string[];
  /** Keys with a number beyond 2^53 - 1: such a row is left out, and nothing is signed with its key. */
  readonly beyond: readonly string[];
}

export interface Web3SignerReading {
  readonly histories: AsyncGenerator<ValidatorHistory>;
  findings(): Web3SignerFindings;
}

/** Rows in memory at a time, of entries and of validators. */
const PAGE_ROWS = 5_000;

interface ValidatorRow {
  readonly id: number;
  readonly public_key: unknown;
  readonly enabled: boolean;
  readonly slot: string | null;
  readonly source_epoch: string | null;
  readonly target_epoch: string | null;
  readonly has_watermark: boolean;
}

/**
 * The histories, in the order of the validators' numbers. The stream rejects with Web3SignerDatabaseError, also
 * when the database does not answer.
 */
export function readWeb3Signer(connections: PostgresConnections, options: Web3SignerOptions): Web3SignerReading {
  const disabled: string[] = [];
  const beyond: string[] = [];
  let lowWatermarks = 0;
  let highWatermark: HighWatermark = { slot: null, epoch: null };

  async function* histories(): AsyncGenerator<ValidatorHistory> {
    const sessions: UnhurriedSession[] = [];
    const open = async (): Promise<Connection> => {
      const session = await connections.openUnhurried();
      sessions.push(session);
      return session.connection;
    };
    try {
      const [watcher, reader] = [await open(), await open()];
      const startedAt = performance.now();
      await begin(reader);
      const schema = await checkSchema(reader, options.genesisValidatorsRoot);
      highWatermark = schema.highWatermark;
      const own = [await pidOf(watcher), await pidOf(reader)];
      await assertUnused(watcher, own);
      const before = await lookAt(reader);
      for await (const row of validators(reader, schema.hasEnabled)) {
        const { isWhole, ...history } = await historyOf(reader, row);
        if (!isWhole) beyond.push(history.publicKey);
        if (!row.enabled) disabled.push(history.publicKey);
        if (row.has_watermark) lowWatermarks += 1;
        yield history;
      }
      await reader.query('COMMIT');
      await pause(Math.max(0, options.looksApartMs - (performance.now() - startedAt)));
      await assertUnused(watcher, own);
      if ((await lookAt(watcher)) !== before) {
        throw new Web3SignerDatabaseError('its rows changed while it was read', STOP_IT);
      }
    } catch (error) {
      throw error instanceof Web3SignerDatabaseError ? error : unreadable(error);
    } finally {
      await Promise.all(sessions.map(({ close }) => close()));
    }
  }
  return { histories: histories(), findings: () => ({ lowWatermarks, highWatermark, disabled, beyond }) };
}

const STOP_IT = 'stop Web3Signer for good, and whatever starts it again, and repeat the import';

/** Whatever this session did by mistake would be refused by the server. */
async function begin(connection: Connection): Promise<void> {
  await connection.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
}

async function pidOf(connection: Connection): Promise<number> {
  const { rows } = await connection.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  return rows[0]?.pid ?? 0;
}

/** Messages of PostgreSQL and of the network name users, hosts and tables, and never a password. */
function unreadable(error: unknown): Web3SignerDatabaseError {
  if (error instanceof SignerError && error.hint !== undefined) {
    return new Web3SignerDatabaseError('it cannot be read', error.hint);
  }
  const facts = error instanceof SignerError ? error.detail?.['error'] : error instanceof Error ? error.message : error;
  const remedy = 'check the address, the password, TLS (sslmode), and that the role may SELECT from these tables';
  return new Web3SignerDatabaseError(`it cannot be read: ${String(facts)}`, remedy);
}

/** By number, page by page; an entry of a validator that is not listed cannot be there: foreign keys. */
async function* validators(connection: Connection, hasEnabled: boolean): AsyncGenerator<ValidatorRow> {
  const text = `
    SELECT v.id, v.public_key, ${hasEnabled ? 'v.enabled' : 'true AS enabled'},
           w.slot::text, w.source_epoch::text, w.target_epoch::text, w.validator_id IS NOT NULL AS has_watermark
    FROM validators v LEFT JOIN low_watermarks w ON w.validator_id = v.id
    WHERE v.id > $1 ORDER BY v.id LIMIT ${PAGE_ROWS}`;
  for (let last = -(2 ** 31); ; ) {
    const { rows } = await connection.query<ValidatorRow>(text, [last]);
    yield* rows;
    const end = rows.at(-1);
    if (end === undefined) return;
    last = end.id;
  }
}

async function historyOf(
  connection: Connection,
  row: ValidatorRow,
): Promise<ValidatorHistory & { readonly isWhole: boolean }> {
  const publicKey = encodeHex(readColumnBytes(row.public_key, 48, `validators, id ${row.id}: public_key`));
  const reducer = historyReducer();
  let isWhole = true;
  /** What is beyond any chain is no entry, and marks its key. */
  const add = (read: () => void): void => {
    try {
      read();
    } catch (error) {
      if (!(error instanceof BeyondRange)) throw error;
      isWhole = false;
    }
  };
  add(() => addLowWatermark(reducer, row, publicKey));
  const blocks = `SELECT slot::text, signing_root FROM signed_blocks WHERE validator_id = ${Number(row.id)} ORDER BY slot`;
  for await (const { slot, signing_root: root } of rowsOf(connection, blocks)) {
    const place = `signed_blocks of ${publicKey}`;
    add(() => reducer.addBlock({ slot: readNumber(slot, `${place}: slot`), signingRoot: rootOf(root, place) }));
  }
  const votes = `
    SELECT source_epoch::text, target_epoch::text, signing_root FROM signed_attestations
    WHERE validator_id = ${Number(row.id)} ORDER BY target_epoch`;
  for await (const { source_epoch: source, target_epoch: target, signing_root: root } of rowsOf(connection, votes)) {
    const place = `signed_attestations of ${publicKey}`;
    add(() => {
      const sourceEpoch = readNumber(source, `${place}: source_epoch`);
      const targetEpoch = readNumber(target, `${place}: target_epoch`);
      reducer.addVote({ sourceEpoch, targetEpoch, signingRoot: rootOf(root, place) });
    });
  }
  return { publicKey, isWhole, place: `validators, id ${row.id}`, ...reducer.result() };
}

/**
 * Web3Signer refuses what lies below its watermark, and judges the watermark itself by the entries. A store refuses
 * up to what was left out, a source only below it (leftOut of signer/slashing/types.ts).
 */
function addLowWatermark(reducer: HistoryReducer, row: ValidatorRow, publicKey: string): void {
  const [slot, source, target] = [row.slot, row.source_epoch, row.target_epoch].map((value) =>
    value === null ? null : readNumber(value, `low_watermarks of ${publicKey}`),
  );
  if (slot === undefined || source === undefined || target === undefined) return;
  if ((source === null) !== (target === null)) {
    throw new Web3SignerDatabaseError(`low_watermarks of ${publicKey}: one epoch without the other`, LOOK_AT_IT);
  }
  if (slot === null && source === null) return;
  const leftOut = {
    slot: slot === null ? null : Math.max(0, slot - 1),
    sourceEpoch: source,
    targetEpoch: target === null ? null : Math.max(0, target - 1),
    blocks: 0,
    attestations: 0,
  };
  reducer.add({ blocks: [], attestations: [], leftOut });
}

const LOOK_AT_IT = 'find out who wrote it; `web3signer eth2 export` writes a file that this program reads too';

/**
 * Web3Signer before 2021, and files that it imported, have entries without a root: they refuse everything at their
 * place.
 */
function rootOf(value: unknown, place: string): Uint8Array | null {
  const root = value === null ? null : readColumnBytes(value, 32, `${place}: signing_root`);
  return root?.every((byte) => byte === 0) === true ? null : root; // of a file of Prysm's: no message has it
}

/** Row by row, in pages of a cursor. */
async function* rowsOf(connection: Connection, text: string): AsyncGenerator<Record<string, unknown>> {
  await connection.query(`DECLARE entries NO SCROLL CURSOR FOR ${text}`);
  for (;;) {
    const { rows } = await connection.query<Record<string, unknown>>(`FETCH FORWARD ${PAGE_ROWS} FROM entries`);
    yield* rows;
    if (rows.length < PAGE_ROWS) break;
  }
  await connection.query('CLOSE entries');
}

// Values of its columns. What no signer writes is refused, with its place and without repeating it.

const REMEDY = 'find out who wrote it: a record that is wrong in one place is not believed in others';

/** Beyond 2^53 - 1. Web3Signer has no clock, and signs up to 2^64 - 1. */
class BeyondRange extends Web3SignerDatabaseError {}

/** NUMERIC(20), as text. @throws BeyondRange, Web3SignerDatabaseError */
export function readNumber(value: unknown, place: string): number {
  const isDecimal = typeof value === 'string' && /^[0-9]{1,20}$/.test(value);
  const number = isDecimal ? Number(value) : Number.NaN;
  if (number > Number.MAX_SAFE_INTEGER) throw new BeyondRange(`${place} is larger than 2^53 - 1`, REMEDY);
  if (!Number.isSafeInteger(number)) throw new Web3SignerDatabaseError(`${place} is not a whole number`, REMEDY);
  return number;
}

export function readColumnBytes(value: unknown, length: number, place: string): Uint8Array {
  if (value instanceof Uint8Array && value.length === length) return value;
  throw new Web3SignerDatabaseError(`${place} is not ${length} bytes`, REMEDY);
}

// Keys that were disabled there, or signed beyond any chain, are retired once the whole database was read and is known
// to be unused, and before anything is merged: whenever this ends, no key signs here that was refused there.

/**
 * As an import of a file: after a fault disabled keys may be retired already, and some keys merged; to repeat it does
 * the rest.
 * @throws Web3SignerDatabaseError, before anything is changed; SignerError
 */
export function mergeWeb3Signer(
  backend: Pick<SlashingBackend, 'importHistories' | 'endTenures'>,
  reading: Web3SignerReading,
  options: ImportOptions,
): Promise<ImportSummary> {
  return backend.importHistories(retiringLast(backend, reading), options);
}

/** A store reads all histories before it merges the first, so the end of the stream comes before the merge. */
async function* retiringLast(
  backend: Pick<SlashingBackend, 'endTenures'>,
  { histories, findings }: Web3SignerReading,
): AsyncGenerator<ValidatorHistory> {
  yield* histories;
  const { disabled, beyond } = findings();
  const retired = [...new Set([...disabled, ...beyond])];
  if (retired.length > 0) await backend.endTenures(retired);
}
