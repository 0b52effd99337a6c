// The schema of the PostgreSQL backend as numbered steps, here rather than in .sql files because the measured image
// holds what enclave/main.ts imports. A step that was released is never changed: its checksum is stored in the
// database and compared at every start. What is new goes into a new step.

export interface Migration {
  /** 1, 2, 3 … without a gap. */
  readonly version: number;
  /** What the step is for. */
  readonly name: string;
  readonly sql: string;
}

export const POSTGRES_MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'signing history',
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
        blocks bigint NOT NULL DEFAULT 0,
        attestations bigint NOT NULL DEFAULT 0,
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
    `,
  },
  {
    version: 2,
    name: 'seals of heads, and the record of the store',
    // The heads that are there are sealed, and the record is made, by upgrade.ts in the same transaction.
    sql: `
      ALTER TABLE strongroom.validators
        ADD COLUMN pruned_below_slot bigint,
        ADD COLUMN pruned_below_target_epoch bigint,
        ADD COLUMN retired boolean NOT NULL DEFAULT false,
        ADD COLUMN digests bytea;

      CREATE TABLE strongroom.store (
        only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
        id bytea NOT NULL CHECK (octet_length(id) = 16),
        revision bigint NOT NULL,
        floor_slot bigint,
        floor_source_epoch bigint,
        floor_target_epoch bigint,
        keys bigint NOT NULL,
        keys_digest bytea NOT NULL,
        system_identifier text,
        timeline bigint,
        code bytea NOT NULL
      ) WITH (fillfactor = 10);
    `,
  },
];
