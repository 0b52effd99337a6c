// Brings a database to the schema of this program. Any number of signers may do it at once: one at a time holds the
// advisory lock, and each looks again once it has it. Refuses a database that a newer program has migrated, and one
// whose steps are not the steps of this program. A database that is up to date is only read.

import { strict as assert } from 'node:assert';
import { hash } from 'node:crypto';
import { SignerError } from '../../../api/errors.ts';
import { type Connection, commit } from '../connection/connections.ts';
import { MIGRATION_LOCK } from '../connection/transactions.ts';
import { type Migration, POSTGRES_MIGRATIONS } from './migrations.ts';

/** What SQL cannot do of a step, by its version; in the transaction of the step. */
export type StepWork = ReadonlyMap<number, (connection: Connection) => Promise<void>>;

/**
 * Resolves with whether the database was new. Rejects with `slashing_unavailable` when the database is not one for this
 * program; then nothing was changed.
 */
export async function migrate(
  connection: Connection,
  work: StepWork,
  migrations: readonly Migration[] = POSTGRES_MIGRATIONS,
): Promise<boolean> {
  for (const [index, { version }] of migrations.entries()) assert.equal(version, index + 1);
  // READ COMMITTED: each statement after the lock sees what its last holder committed.
  await connection.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  await connection.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
  if (!(await hasSchema(connection))) await createSteps(connection);
  const applied = await appliedSteps(connection);
  confirmSteps(applied, migrations);
  for (const migration of migrations.slice(applied.length)) {
    await connection.query(migration.sql);
    await work.get(migration.version)?.(connection);
    await connection.query('INSERT INTO strongroom.schema_version (version, name, checksum) VALUES ($1, $2, $3)', [
      migration.version,
      migration.name,
      checksumOf(migration),
    ]);
  }
  await commit(connection);
  return applied.length === 0;
}

/**
 * How many steps a database has and lacks; nothing is changed.
 * @throws SignerError slashing_unavailable as migrate does
 */
export async function missingSteps(
  connection: Connection,
  migrations: readonly Migration[] = POSTGRES_MIGRATIONS,
): Promise<{ readonly applied: number; readonly missing: number }> {
  const applied = (await hasSchema(connection)) ? await appliedSteps(connection) : [];
  confirmSteps(applied, migrations);
  return { applied: applied.length, missing: migrations.length - applied.length };
}

interface AppliedStep {
  readonly version: number;
  readonly checksum: Buffer;
}

function confirmSteps(applied: readonly AppliedStep[], migrations: readonly Migration[]): void {
  for (const [index, { version, checksum }] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) throw unfit('the slashing database was migrated by a newer version of this program');
    if (version !== known.version || !checksum.equals(checksumOf(known))) {
      throw unfit('the schema of the slashing database is not the one of this program');
    }
  }
}

/** Asked first, because CREATE … IF NOT EXISTS needs the right to create even where there is nothing to do. */
async function hasSchema(connection: Connection): Promise<boolean> {
  const found = await connection.query("SELECT to_regclass('strongroom.schema_version') IS NOT NULL AS exists");
  return found.rows[0]?.exists === true;
}

async function createSteps(connection: Connection): Promise<void> {
  await connection.query('CREATE SCHEMA IF NOT EXISTS strongroom');
  await connection.query(`
    CREATE TABLE strongroom.schema_version (
      version integer PRIMARY KEY,
      name text NOT NULL,
      checksum bytea NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    )`);
}

async function appliedSteps(connection: Connection): Promise<AppliedStep[]> {
  return (await connection.query('SELECT version, checksum FROM strongroom.schema_version ORDER BY version')).rows;
}

function checksumOf(migration: Migration): Buffer {
  return hash('sha256', migration.sql, 'buffer');
}

function unfit(hint: string): SignerError {
  return new SignerError('slashing_unavailable', { hint });
}
