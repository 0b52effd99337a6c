// Opens the database as the one writer, with the schema, and bound to one network. Refuses a database of another
// network, of another program, or whose integrity codes are of another kind than this process can make.

import { randomFillSync } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { ofOtherNetwork } from '../../../api/network-table.ts';
import type { RowIntegrity } from '../../history/codes.ts';
import { GATHERED_EPOCHS, RETAINED_EPOCHS, RETAINED_SLOTS } from '../../history/prune.ts';
import { STORE_ID_BYTES } from '../../incarnation.ts';
import { newRecord, SCHEMA_VERSION, storeRecord } from './record.ts';
import { inTransaction } from './rows.ts';

/** How long a lock of another process (a backup, a shell) may hold up a batch before it is 503. */
const BUSY_TIMEOUT_MS = 250;
/** Each key has pages of its own, so the default of 2 MB holds those of some hundred keys. */
const CACHE_KIBIBYTES = 16 * 1024;
/** Pages (4 KiB) of the write-ahead log from which on a commit moves them (backend.ts is to be faster). */
const CHECKPOINT_PAGES = 8000;

export interface DatabaseOptions {
  readonly path: string;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  readonly integrity: RowIntegrity;
}

export function openDatabase(options: DatabaseOptions): DatabaseSync {
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(options.path, { timeout: BUSY_TIMEOUT_MS });
    makeDurable(connection);
    inTransaction(connection, (open) => bind(open, options));
    indexPrunable(connection);
    return connection;
  } catch (cause) {
    connection?.close();
    if (cause instanceof DatabaseRefusal) throw cause;
    throw new DatabaseRefusal('the database cannot be opened', { cause });
  }
}

/** A second connection, which sees one state of the database in each snapshot. */
export function openReader(path: string): DatabaseSync {
  return new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
}

/** The state of the database from now on, until the transaction ends. */
export function beginSnapshot(connection: DatabaseSync): void {
  connection.exec('BEGIN; SELECT id FROM metadata');
}

/** For checkpoints, in a thread of its own, to a database that openDatabase holds open. It waits for no lock. */
export function openBesideWriter(path: string): DatabaseSync {
  const connection = new DatabaseSync(path, { timeout: 0 });
  makeDurable(connection);
  return connection;
}

/** Why this process will not use a database that it can read. Its text may be shown. */
export class DatabaseRefusal extends Error {}

/** SQLite keeps another journal mode without an error where it cannot have this one. */
function makeDurable(connection: DatabaseSync): void {
  connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF');
  connection.exec(`PRAGMA cache_size = -${CACHE_KIBIBYTES}; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  const journal = connection.prepare('PRAGMA journal_mode').get()?.['journal_mode'];
  const synchronous = connection.prepare('PRAGMA synchronous').get()?.['synchronous'];
  if (journal !== 'wal' || synchronous !== 2)
    throw new DatabaseRefusal('the file system cannot hold a durable database');
}

function bind(connection: DatabaseSync, options: DatabaseOptions): void {
  const { genesisValidatorsRoot, integrity } = options;
  const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table'").get();
  if (tables?.['count'] === 0) {
    connection.exec(SCHEMA);
    storeRecord(connection, options).insert(newRecord(randomFillSync(new Uint8Array(STORE_ID_BYTES))));
    return;
  }
  confirmOurs(connection, { genesisValidatorsRoot, kind: integrity.kind });
  try {
    storeRecord(connection, options).read();
  } catch {
    throw new DatabaseRefusal(
      'the metadata of the database fails its integrity check, or the master key is another one',
    );
  }
}

/**
 * Each opening makes the index again, so that it has this condition and covers these heads, whatever another process
 * left.
 */
function indexPrunable(connection: DatabaseSync): void {
  try {
    inTransaction(connection, (open) => {
      open.exec('DROP INDEX IF EXISTS prunable_validators');
      open.exec(`CREATE INDEX prunable_validators ON validators (public_key) WHERE ${IS_PRUNABLE}`);
    });
  } catch {
    // A page of heads is damaged: its keys are refused one by one, the others sign, and pruning tells what it meets.
  }
}

export interface ExpectedMetadata {
  readonly genesisValidatorsRoot: Uint8Array;
  readonly kind: RowIntegrity['kind'];
}

/**
 * The part of opening that needs no key and writes nothing: of which schema, network and kind of codes a database is.
 * @throws DatabaseRefusal
 */
export function confirmOurs(connection: DatabaseSync, { genesisValidatorsRoot, kind }: ExpectedMetadata): void {
  const metadata = connection.prepare('SELECT * FROM metadata WHERE id = 1').get();
  if (metadata === undefined) throw new DatabaseRefusal('the database has lost its metadata');
  if (metadata['schema_version'] !== SCHEMA_VERSION)
    throw new DatabaseRefusal('the database is of another schema version');
  const root = metadata['genesis_validators_root'];
  if (!(root instanceof Uint8Array) || Buffer.compare(root, genesisValidatorsRoot) !== 0)
    throw new DatabaseRefusal(`the database is ${ofOtherNetwork(root, genesisValidatorsRoot)}`);
  if (metadata['integrity_kind'] !== kind) {
    throw new DatabaseRefusal(
      kind === 'hmac'
        ? 'the database was made without a master key: export it and import it into a new one'
        : 'the database was made with a master key, which is not available here',
    );
  }
}

// The tables of the database.

/** Of a head that has something to forget (history/prune.ts). Its index serves queries that say it in these words. */
export const IS_PRUNABLE =
  `(low_slot < high_slot - ${RETAINED_SLOTS} OR ` +
  `low_target_epoch < high_target_epoch - ${RETAINED_EPOCHS + GATHERED_EPOCHS})`;

/** The cell `seal` of a head (history/codes.ts) holds the code of the row and the masked digests. */
const SCHEMA = `
CREATE TABLE metadata (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  schema_version INTEGER NOT NULL,
  genesis_validators_root BLOB NOT NULL,
  integrity_kind TEXT NOT NULL,
  store_id BLOB NOT NULL,
  incarnation TEXT NOT NULL,
  floor_slot INTEGER,
  floor_source_epoch INTEGER,
  floor_target_epoch INTEGER,
  validator_count INTEGER NOT NULL,
  keys_digest BLOB NOT NULL,
  code BLOB NOT NULL
) STRICT;

CREATE TABLE validators (
  id INTEGER PRIMARY KEY,
  public_key BLOB NOT NULL UNIQUE,
  low_slot INTEGER,
  low_source_epoch INTEGER,
  low_target_epoch INTEGER,
  high_slot INTEGER,
  high_source_epoch INTEGER,
  high_target_epoch INTEGER,
  pruned_slot INTEGER,
  pruned_target_epoch INTEGER,
  tenure INTEGER NOT NULL,
  block_count INTEGER NOT NULL,
  attestation_count INTEGER NOT NULL,
  seal BLOB NOT NULL
) STRICT;

CREATE TABLE blocks (
  validator INTEGER NOT NULL,
  slot INTEGER NOT NULL,
  signing_root BLOB,
  code BLOB NOT NULL,
  PRIMARY KEY (validator, slot)
) STRICT, WITHOUT ROWID;

CREATE TABLE attestations (
  validator INTEGER NOT NULL,
  target_epoch INTEGER NOT NULL,
  source_epoch INTEGER NOT NULL,
  signing_root BLOB,
  code BLOB NOT NULL,
  PRIMARY KEY (validator, target_epoch, source_epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE staged (
  id INTEGER PRIMARY KEY,
  import_id INTEGER NOT NULL,
  public_key BLOB NOT NULL,
  history TEXT NOT NULL,
  code BLOB NOT NULL
) STRICT;
CREATE INDEX staged_keys ON staged (import_id, public_key);
`;
