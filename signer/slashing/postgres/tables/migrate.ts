// Brings a database to the schema of this program. It refuses one of a newer program, and one with other steps.

import { strict as assert } from 'node:assert';
import { hash } from 'node:crypto';
import { SignerError } from '../../../api/errors.ts';
import { ofOtherNetwork } from '../../../api/network-table.ts';
import { type HistoryCodes, NO_PUBLIC_KEY, type RowIntegrity } from '../../history/codes.ts';
import { type Connection, commit, MIGRATION_LOCK } from '../connection/connections.ts';
import { identityOfServer, type ServerQuestions } from '../connection/server.ts';
import { createStore } from './store.ts';

/**
 * Rejects with `slashing_unavailable` when the database is not one for this program.
 * @param fill is done in a new database, in the transaction of its steps @returns whether it was new
 */
export async function migrateSchema(
  connection: Connection,
  fill: () => Promise<void>,
  migrations: readonly Migration[] = POSTGRES_MIGRATIONS,
): Promise<boolean> {
  for (const [index, { version }] of migrations.entries()) assert.equal(version, index + 1);
  // READ COMMITTED: each statement after the lock sees what its last holder committed.
  await connection.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await connection.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  if (!(await hasSchema(connection))) await createSteps(connection);
  const applied = await appliedSteps(connection);
  confirmSteps(applied, migrations);
  const note = 'INSERT INTO strongroom.schema_version (version, name, checksum) VALUES ($1, $2, $3)';
  for (const migration of migrations.slice(applied.length)) {
    const { version, name, sql } = migration;
    await connection.query(sql);
    await connection.query(note, [version, name, checksumOf(migration)]);
  }
  const isNew = applied.length === 0;
  if (isNew) await fill();
  await commit(connection);
  return isNew;
}

interface AppliedStep {
  readonly version: number;
  readonly checksum: Buffer;
}

export function confirmSteps(applied: readonly AppliedStep[], migrations: readonly Migration[]): void {
  for (const [index, { version, checksum }] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) throw unfit('the slashing database was migrated by a newer version of this program');
    if (version !== known.version || !checksum.equals(checksumOf(known))) {
      throw unfit('the schema of the slashing database is not the one of this program');
    }
  }
}

/** CREATE … IF NOT EXISTS needs the right to create even where there is nothing to do. */
export async function hasSchema(connection: Connection): Promise<boolean> {
  const found = await connection.query("SELECT to_regclass('strongroom.schema_version') IS NOT NULL AS exists");
  return found.rows[0]?.exists === true;
}

async function createSteps(connection: Connection): Promise<void> {
  await connection.query(`
    CREATE SCHEMA IF NOT EXISTS strongroom; CREATE TABLE strongroom.schema_version (
      version integer PRIMARY KEY,
      name text NOT NULL,
      checksum bytea NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    )`);
}

export async function appliedSteps(connection: Connection): Promise<AppliedStep[]> {
  return (await connection.query('SELECT version, checksum FROM strongroom.schema_version ORDER BY version')).rows;
}

const checksumOf = (migration: Migration): Buffer => hash('sha256', migration.sql, 'buffer');

function unfit(hint: string): SignerError {
  return new SignerError('slashing_unavailable', { hint });
}

// A step that was released is never changed: its checksum is compared at every start. In .sql files the steps would not
// be in the measured image.

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export const POSTGRES_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'signing history, and the record of the store',
    sql: `
      CREATE TABLE strongroom.binding (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        genesis_validators_root bytea NOT NULL CHECK (octet_length(genesis_validators_root) = 32),
        code bytea NOT NULL
      );

      -- One row a key: what a batch locks. The marks are columns without an index, so updates of them stay in the page.
      CREATE TABLE strongroom.validators (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        public_key bytea NOT NULL UNIQUE CHECK (octet_length(public_key) = 48),
        highest_slot bigint,
        highest_source_epoch bigint,
        highest_target_epoch bigint,
        low_water_slot bigint,
        low_water_source_epoch bigint,
        low_water_target_epoch bigint,
        pruned_below_slot bigint,
        pruned_below_target_epoch bigint,
        tenure bigint NOT NULL DEFAULT 0,
        blocks bigint NOT NULL DEFAULT 0,
        attestations bigint NOT NULL DEFAULT 0,
        digests bytea NOT NULL,
        code bytea NOT NULL
      ) WITH (fillfactor = 50);

      CREATE TABLE strongroom.blocks (
        validator_id bigint NOT NULL REFERENCES strongroom.validators (id),
        slot bigint NOT NULL CHECK (slot >= 0),
        signing_root bytea CHECK (octet_length(signing_root) = 32),
        code bytea NOT NULL,
        PRIMARY KEY (validator_id, slot)
      );

      -- Imported histories may hold two votes for one target; then both sources count.
      CREATE TABLE strongroom.attestations (
        validator_id bigint NOT NULL REFERENCES strongroom.validators (id),
        target_epoch bigint NOT NULL CHECK (target_epoch >= 0),
        source_epoch bigint NOT NULL CHECK (source_epoch >= 0),
        signing_root bytea CHECK (octet_length(signing_root) = 32),
        code bytea NOT NULL,
        PRIMARY KEY (validator_id, target_epoch, source_epoch)
      );

      -- One row, made in the same transaction (migrate.ts).
      CREATE TABLE strongroom.store (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        id bytea NOT NULL CHECK (octet_length(id) = 16),
        revision bigint NOT NULL,
        incarnation text NOT NULL,
        floor_slot bigint,
        floor_source_epoch bigint,
        floor_target_epoch bigint,
        keys bigint NOT NULL,
        keys_digest bytea NOT NULL,
        system_identifier text,
        objects text NOT NULL,
        timeline bigint,
        code bytea NOT NULL
      ) WITH (fillfactor = 10);
    `,
  },
];

interface BindingTools {
  readonly codes: HistoryCodes;
  readonly integrity: RowIntegrity;
  readonly genesisValidatorsRoot: Uint8Array;
  readonly questions: ServerQuestions;
}

/** What SQL cannot do of a new database. */
export async function bindAndRecord(
  connection: Connection,
  { codes, integrity, genesisValidatorsRoot: root, questions }: BindingTools,
): Promise<void> {
  const text = 'INSERT INTO strongroom.binding (genesis_validators_root, code) VALUES ($1, $2)';
  await connection.query(text, [root, bindingCode(integrity, root)]);
  await createStore(connection, codes, await identityOfServer(connection, questions));
}

export async function checkBinding(
  connection: Connection,
  { integrity, genesisValidatorsRoot }: Pick<BindingTools, 'integrity' | 'genesisValidatorsRoot'>,
): Promise<void> {
  const row = await bindingOf(connection);
  confirmRoot(row, genesisValidatorsRoot);
  if (!row.code.equals(bindingCode(integrity, genesisValidatorsRoot))) {
    throw new SignerError('slashing_integrity', { hint: 'the slashing database was written with another key' });
  }
}

type BindingRow = Readonly<Record<'genesis_validators_root' | 'code', Buffer>>;

export async function bindingOf(connection: Connection): Promise<BindingRow> {
  const { rows } = await connection.query<BindingRow>('SELECT genesis_validators_root, code FROM strongroom.binding');
  if (rows[0] === undefined) throw new Error('the binding of the slashing database is not there');
  return rows[0];
}

export function confirmRoot({ genesis_validators_root: root }: BindingRow, genesisValidatorsRoot: Uint8Array): void {
  if (root.equals(genesisValidatorsRoot)) return;
  const hint = `the slashing database is ${ofOtherNetwork(root, genesisValidatorsRoot)}`;
  throw new SignerError('slashing_unavailable', { hint });
}

function bindingCode(integrity: RowIntegrity, genesisValidatorsRoot: Uint8Array): Uint8Array {
  return integrity.code('binding', NO_PUBLIC_KEY, [genesisValidatorsRoot]);
}
