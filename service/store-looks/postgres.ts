// Whether a start could use the database, without changing it: `server --check`, which no enclave has. It connects as a
// start does, and reads in a transaction that cannot write: the steps of the schema, the network that the database is
// bound to, and what the role may do.

import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../../signer/api/errors.ts';
import { confirmWritable } from '../../signer/slashing/postgres/backend.ts';
import {
  type Connection,
  type PostgresConnectionOptions,
  PostgresConnections,
} from '../../signer/slashing/postgres/connection/connections.ts';
import { warnOfUnsafeSettings } from '../../signer/slashing/postgres/connection/server.ts';
import {
  appliedSteps,
  bindingOf,
  confirmRoot,
  confirmSteps,
  hasSchema,
  POSTGRES_MIGRATIONS,
} from '../../signer/slashing/postgres/tables/migrate.ts';
import type { StoreFloor } from '../../signer/slashing/types.ts';
import type { StoreGlimpse } from '../look.ts';

/** @throws SignerError slashing_unavailable, as the start would */
export async function lookAtPostgres(
  options: PostgresConnectionOptions & { readonly genesisValidatorsRoot: Uint8Array },
  tools: { readonly log: Log; readonly clock: Clock },
): Promise<StoreGlimpse> {
  const connections = new PostgresConnections({ ...options, poolSize: 1 }, tools);
  try {
    return await connections.use(async (connection) => {
      await confirmWritable(connection);
      await connection.query('BEGIN READ ONLY');
      const found = await glimpse(connection, options.genesisValidatorsRoot);
      await connection.query('ROLLBACK');
      await warnOfUnsafeSettings(connection, tools.log);
      return found;
    });
  } finally {
    await connections.close();
  }
}

async function glimpse(connection: Connection, genesisValidatorsRoot: Uint8Array): Promise<StoreGlimpse> {
  const steps = (await hasSchema(connection)) ? await appliedSteps(connection) : [];
  confirmSteps(steps, POSTGRES_MIGRATIONS);
  if (steps.length === 0) {
    await confirmMayCreate(connection);
    return { state: 'new' };
  }
  confirmRoot(await bindingOf(connection), genesisValidatorsRoot);
  if (steps.length < POSTGRES_MIGRATIONS.length) return { state: 'old' };
  await confirmGranted(connection);
  const floor = await connection.query<StoreFloor>(FLOOR);
  const marks = await connection.query<NonNullable<StoreGlimpse['marks']>[number]>(MARKS);
  return { state: 'good', floor: floor.rows[0] ?? null, marks: marks.rows, isWhole: true };
}

async function confirmMayCreate(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ allowed: boolean }>(`
    SELECT CASE WHEN to_regnamespace('strongroom') IS NULL
                THEN has_database_privilege(current_database(), 'CREATE')
                ELSE has_schema_privilege('strongroom', 'CREATE') END AS allowed`);
  if (rows[0]?.allowed === true) return;
  const hint =
    'the slashing database has no tables yet, and this role may not make them: start once with the role that owns ' +
    'the database (docs/guides/postgres.md)';
  throw new SignerError('slashing_unavailable', { hint });
}

/** What docs/guides/postgres.md grants the signers’ role. A column that may be updated stands for the others. */
const NEEDED: readonly (readonly [table: string, privilege: string, column?: string])[] = [
  ['schema_version', 'SELECT'],
  ['binding', 'SELECT'],
  ['store', 'SELECT'],
  ['store', 'UPDATE'],
  ['validators', 'SELECT'],
  ['validators', 'INSERT'],
  ['validators', 'UPDATE', 'highest_slot'],
  ...['blocks', 'attestations'].flatMap((table) => [
    [table, 'SELECT'] as const,
    [table, 'INSERT'] as const,
    [table, 'DELETE'] as const,
    [table, 'UPDATE', 'signing_root'] as const,
  ]),
];

async function confirmGranted(connection: Connection): Promise<void> {
  const questions = NEEDED.map(([table, privilege, column]) =>
    column === undefined
      ? `has_table_privilege('strongroom.${table}', '${privilege}')`
      : `has_column_privilege('strongroom.${table}', '${column}', '${privilege}')`,
  );
  const { rows } = await connection.query<{ granted: boolean[] }>(`SELECT ARRAY[${questions.join(', ')}] AS granted`);
  const missing = NEEDED.filter((_needed, index) => rows[0]?.granted[index] !== true);
  if (missing.length === 0) return;
  const named = missing.map(([table, privilege]) => `${privilege} on strongroom.${table}`).join(', ');
  const hint = `the role of the slashing database lacks ${named}: grant it (docs/guides/postgres.md)`;
  throw new SignerError('slashing_unavailable', { hint });
}

const FLOOR = `
  SELECT floor_slot AS slot, floor_source_epoch AS "sourceEpoch", floor_target_epoch AS "targetEpoch"
  FROM strongroom.store WHERE floor_slot IS NOT NULL`;

const MARKS = `
  SELECT '0x' || encode(public_key, 'hex') AS key, greatest(highest_slot, low_water_slot) AS slot,
         greatest(highest_source_epoch, low_water_source_epoch) AS "sourceEpoch",
         greatest(highest_target_epoch, low_water_target_epoch) AS "targetEpoch"
  FROM strongroom.validators`;
