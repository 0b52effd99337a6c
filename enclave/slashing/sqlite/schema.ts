// Opens the database as the one writer, with the schema, and bound to one network. Refuses a database of another
// network, of a newer program, or whose integrity codes are of another kind than this process can make.

import { DatabaseSync } from 'node:sqlite';
import type { RowIntegrity } from '../history/integrity.ts';

const SCHEMA_VERSION = 1;
/** How long a lock of another process (a backup, a shell) may hold up a batch before it is 503. */
const BUSY_TIMEOUT_MS = 250;
/** Each key has pages of its own, so the default of 2 MB holds those of some hundred keys. */
const CACHE_KIBIBYTES = 16 * 1024;
/** Pages (4 KiB) of the write-ahead log from which on a commit moves them to the database itself (checkpoint.ts is to be faster). */
const CHECKPOINT_PAGES = 8000;

// `validators` is the head of each key's history: the marks of EIP-3076, how many entries there are, and the XOR of
// their integrity codes (so an entry that is gone is noticed). `code` is the integrity code of the row.
const SCHEMA = `
CREATE TABLE metadata (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  schema_version INTEGER NOT NULL,
  genesis_validators_root BLOB NOT NULL,
  integrity_kind TEXT NOT NULL,
  validator_count INTEGER NOT NULL,
  code BLOB NOT NULL
) STRICT;

CREATE TABLE validators (
  id INTEGER PRIMARY KEY,
  public_key BLOB NOT NULL UNIQUE,
  low_slot INTEGER,
  high_slot INTEGER,
  low_source_epoch INTEGER,
  low_target_epoch INTEGER,
  high_source_epoch INTEGER,
  high_target_epoch INTEGER,
  block_count INTEGER NOT NULL,
  block_digest BLOB NOT NULL,
  attestation_count INTEGER NOT NULL,
  attestation_digest BLOB NOT NULL,
  code BLOB NOT NULL
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
`;

export interface DatabaseOptions {
  /** An existing file (preparePrivateFile). */
  readonly path: string;
  /** 32 bytes. */
  readonly genesisValidatorsRoot: Uint8Array;
  readonly integrity: RowIntegrity;
}

/** @throws Error whose message says why, in constant text */
export function openDatabase(options: DatabaseOptions): DatabaseSync {
  let connection: DatabaseSync | undefined;
  try {
    connection = new DatabaseSync(options.path, { timeout: BUSY_TIMEOUT_MS });
    makeDurable(connection);
    inTransaction(connection, (open) => bind(open, options));
    return connection;
  } catch (cause) {
    connection?.close();
    if (cause instanceof DatabaseRefusal) throw cause;
    throw new DatabaseRefusal('the database cannot be opened', { cause });
  }
}

/** A second connection that sees one state of the database for as long as it is open. */
export function openSnapshot(path: string): DatabaseSync {
  const connection = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  connection.exec('BEGIN');
  connection.prepare('SELECT id FROM metadata').get();
  return connection;
}

/** A connection for checkpoints, in a thread of its own, to a database that openDatabase has opened and holds open. It waits for no lock. */
export function openBesideWriter(path: string): DatabaseSync {
  const connection = new DatabaseSync(path, { timeout: 0 });
  makeDurable(connection);
  return connection;
}

/** All of `work`, or nothing of it. */
export function inTransaction<Result>(connection: DatabaseSync, work: (open: DatabaseSync) => Result): Result {
  connection.exec('BEGIN IMMEDIATE');
  try {
    const result = work(connection);
    connection.exec('COMMIT');
    return result;
  } catch (error) {
    if (connection.isTransaction) connection.exec('ROLLBACK');
    throw error;
  }
}

/** How many keys the database has heads for, kept beside the heads so that a head that is gone is noticed. */
export function validatorCounter(connection: DatabaseSync, { genesisValidatorsRoot, integrity }: DatabaseOptions) {
  const read = connection.prepare('SELECT validator_count AS count, code FROM metadata WHERE id = 1');
  const count = connection.prepare('SELECT count(*) AS count FROM validators');
  const write = connection.prepare('UPDATE metadata SET validator_count = ?, code = ? WHERE id = 1');
  return {
    /** The count, or undefined when it is not what the table holds. Counts the table: ask once a batch at most. */
    verified(): number | undefined {
      const row = read.get();
      const stored = row?.['count'];
      if (row === undefined || typeof stored !== 'number' || !(row['code'] instanceof Uint8Array)) return undefined;
      const fields = metadataFields(genesisValidatorsRoot, integrity, stored);
      if (!integrity.verify(row['code'], 'metadata', NO_PUBLIC_KEY, fields)) return undefined;
      return count.get()?.['count'] === stored ? stored : undefined;
    },
    set(value: number): void {
      const fields = metadataFields(genesisValidatorsRoot, integrity, value);
      write.run(value, integrity.code('metadata', NO_PUBLIC_KEY, fields));
    },
  };
}

/** Why this process will not use a database that it can read. The text is constant: it may be shown. */
class DatabaseRefusal extends Error {}

/** A commit is on disk when it returns. SQLite keeps another journal mode without an error where it cannot have this one. */
function makeDurable(connection: DatabaseSync): void {
  connection.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF');
  connection.exec(`PRAGMA cache_size = -${CACHE_KIBIBYTES}; PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  const journal = connection.prepare('PRAGMA journal_mode').get()?.['journal_mode'];
  const synchronous = connection.prepare('PRAGMA synchronous').get()?.['synchronous'];
  if (journal !== 'wal' || synchronous !== 2)
    throw new DatabaseRefusal('the file system cannot hold a durable database');
}

const NO_PUBLIC_KEY = new Uint8Array(48);

function metadataFields(genesisValidatorsRoot: Uint8Array, integrity: RowIntegrity, validatorCount: number) {
  return [SCHEMA_VERSION, genesisValidatorsRoot, Buffer.from(integrity.kind), validatorCount];
}

function bind(connection: DatabaseSync, { genesisValidatorsRoot, integrity }: DatabaseOptions): void {
  const tables = connection.prepare("SELECT count(*) AS count FROM sqlite_schema WHERE type = 'table'").get();
  if (tables?.['count'] === 0) {
    connection.exec(SCHEMA);
    const code = integrity.code('metadata', NO_PUBLIC_KEY, metadataFields(genesisValidatorsRoot, integrity, 0));
    connection
      .prepare('INSERT INTO metadata VALUES (1, ?, ?, ?, 0, ?)')
      .run(SCHEMA_VERSION, genesisValidatorsRoot, integrity.kind, code);
    return;
  }
  const metadata = connection.prepare('SELECT * FROM metadata WHERE id = 1').get();
  if (metadata === undefined) throw new DatabaseRefusal('the database has lost its metadata');
  if (metadata['schema_version'] !== SCHEMA_VERSION)
    throw new DatabaseRefusal('the database is of another schema version');
  const root = metadata['genesis_validators_root'];
  if (!(root instanceof Uint8Array) || Buffer.compare(root, genesisValidatorsRoot) !== 0) {
    throw new DatabaseRefusal('the database belongs to another network: its genesis validators root differs');
  }
  if (metadata['integrity_kind'] !== integrity.kind) {
    throw new DatabaseRefusal(
      integrity.kind === 'hmac'
        ? 'the database was made without a master key: export it and import it into a new one'
        : 'the database was made with a master key, which is not available here',
    );
  }
  const fields = metadataFields(genesisValidatorsRoot, integrity, Number(metadata['validator_count']));
  const { code } = metadata;
  if (!(code instanceof Uint8Array) || !integrity.verify(code, 'metadata', NO_PUBLIC_KEY, fields)) {
    throw new DatabaseRefusal(
      'the metadata of the database fails its integrity check, or the master key is another one',
    );
  }
}
