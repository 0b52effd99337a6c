// The tables of the database.

export const SCHEMA_VERSION = 1;

/** One row: which store this is, and what holds for all its keys; under an integrity code (record.ts). */
export const METADATA_TABLE = `
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
`;

/** The head of each key's history (history/codes.ts). `seal` holds the code of the row and the masked digests. */
export const VALIDATORS_TABLE = `
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
`;

const ENTRY_TABLES = `
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

export const STAGED_TABLE = `
CREATE TABLE staged (
  id INTEGER PRIMARY KEY,
  import_id INTEGER NOT NULL,
  public_key BLOB NOT NULL,
  history TEXT NOT NULL,
  code BLOB NOT NULL
) STRICT;
CREATE INDEX staged_keys ON staged (import_id, public_key);
`;

export const SCHEMA = VALIDATORS_TABLE + ENTRY_TABLES + STAGED_TABLE;
