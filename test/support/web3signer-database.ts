// A database as Web3Signer leaves it, in a test's PostgreSQL: its tables, columns and constraints by our own
// statements, after the facts of its migrations V00001 to V00012.

import type { PostgresServer } from './postgres.ts';
import { MAIN_ROOT } from './slashing.ts';

export interface Web3SignerDatabase {
  readonly name: string;
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
}

export interface SchemaOptions {
  /** As database_version says. */
  readonly version?: number;
  /** `0x` and 64 hex digits. */
  readonly genesisValidatorsRoot?: string;
}

const TABLES = `
  CREATE TABLE validators (id serial PRIMARY KEY, public_key bytea NOT NULL UNIQUE);
  CREATE TABLE signed_blocks (
    validator_id integer NOT NULL REFERENCES validators (id), slot numeric(20) NOT NULL, signing_root bytea,
    id bigserial PRIMARY KEY);
  CREATE TABLE signed_attestations (
    validator_id integer REFERENCES validators (id), source_epoch numeric(20) NOT NULL,
    target_epoch numeric(20) NOT NULL, signing_root bytea, id bigserial PRIMARY KEY);
  CREATE INDEX ON signed_blocks (validator_id, slot);
  CREATE INDEX ON signed_attestations (validator_id, target_epoch);
  CREATE TABLE low_watermarks (
    validator_id integer NOT NULL UNIQUE REFERENCES validators (id),
    slot numeric(20), target_epoch numeric(20), source_epoch numeric(20),
    CONSTRAINT both_epochs_set_or_null CHECK ((target_epoch IS NULL) = (source_epoch IS NULL)));
  CREATE TABLE metadata (id integer PRIMARY KEY, genesis_validators_root bytea NOT NULL);
  CREATE TABLE database_version (id integer PRIMARY KEY, version integer NOT NULL)`;

const UNIQUE_ENTRIES = `
  ALTER TABLE signed_blocks ADD UNIQUE (validator_id, slot);
  ALTER TABLE signed_attestations ADD UNIQUE (validator_id, target_epoch)`;

const ENABLED = 'ALTER TABLE validators ADD COLUMN enabled boolean NOT NULL DEFAULT true';

const HIGH_WATERMARK =
  'ALTER TABLE metadata ADD COLUMN high_watermark_epoch numeric(20), ADD COLUMN high_watermark_slot numeric(20)';

export async function createWeb3SignerDatabase(
  server: PostgresServer,
  { version = 12, genesisValidatorsRoot = MAIN_ROOT }: SchemaOptions = {},
): Promise<Web3SignerDatabase> {
  const name = await server.createDatabase();
  const query: Web3SignerDatabase['query'] = (text, values) => server.query(name, text, values);
  await query(TABLES);
  if (version >= 8) await query(UNIQUE_ENTRIES);
  if (version >= 10) await query(ENABLED);
  if (version >= 12) await query(HIGH_WATERMARK);
  await query('INSERT INTO database_version VALUES (1, $1)', [version]);
  const root = Buffer.from(genesisValidatorsRoot.slice(2), 'hex');
  await query('INSERT INTO metadata (id, genesis_validators_root) VALUES (1, $1)', [root]);
  return { name, query };
}

/**
 * Validators of publicKeyOf(1) and up, with a vote for each of the epochs, a block every 32 slots, and their
 * watermarks.
 */
export async function fillWithDuties(
  { query }: Web3SignerDatabase,
  { validators, epochs }: { readonly validators: number; readonly epochs: number },
): Promise<void> {
  await query(
    `INSERT INTO validators (public_key) SELECT decode(lpad(to_hex(n), 96, '0'), 'hex') FROM generate_series(1, $1::int) n`,
    [validators],
  );
  await query(
    `INSERT INTO signed_attestations (validator_id, source_epoch, target_epoch, signing_root)
     SELECT v.id, n - 1, n, sha256(n::text::bytea) FROM generate_series(1, $1::int) n, validators v`,
    [epochs],
  );
  await query(
    `INSERT INTO signed_blocks (validator_id, slot, signing_root)
     SELECT v.id, n * 32, sha256(n::text::bytea) FROM generate_series(1, $1::int) n, validators v WHERE n % 16 = 0`,
    [epochs],
  );
  await query(
    'INSERT INTO low_watermarks (validator_id, slot, source_epoch, target_epoch) SELECT id, 512, 0, 1 FROM validators',
  );
}
