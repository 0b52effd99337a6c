// Facts of Web3Signer's migrations V00001 to V00012. Version 7 is the first that the database itself names; `enabled`
// came with 10, the high watermark with 12. A later version may mean something else by the same columns: it is refused.

import { ofOtherNetwork } from '../../signer/api/network-table.ts';
import type { Connection } from '../../signer/slashing/postgres/connection/connections.ts';

const OLDEST_VERSION = 7;
const VERSION_OF_ENABLED = 10;
const VERSION_OF_HIGH_WATERMARK = 12;
const NEWEST_VERSION = 12;

/** Read by this program; a missing one is named. */
export const WEB3SIGNER_TABLES = [
  'validators',
  'signed_blocks',
  'signed_attestations',
  'low_watermarks',
  'metadata',
  'database_version',
] as const;

/** Why a database is refused as a whole, and what to do. Holds nothing of its address. */
export class Web3SignerDatabaseError extends Error {
  readonly remedy: string;

  constructor(problem: string, remedy: string) {
    super(problem);
    this.name = 'Web3SignerDatabaseError';
    this.remedy = remedy;
  }
}

/** Web3Signer refuses to sign at or beyond it; null where none is set. As decimal text. */
export interface HighWatermark {
  readonly slot: string | null;
  readonly epoch: string | null;
}

export interface Schema {
  readonly hasEnabled: boolean;
  readonly highWatermark: HighWatermark;
}

/** @throws Web3SignerDatabaseError */
export async function checkSchema(connection: Connection, genesisValidatorsRoot: Uint8Array): Promise<Schema> {
  await checkTables(connection);
  const version = await versionOf(connection);
  await checkNetwork(connection, genesisValidatorsRoot);
  await checkOwners(connection);
  return {
    hasEnabled: version >= VERSION_OF_ENABLED,
    highWatermark: version >= VERSION_OF_HIGH_WATERMARK ? await highWatermarkOf(connection) : NO_WATERMARK,
  };
}

const NO_WATERMARK: HighWatermark = { slot: null, epoch: null };
const UPGRADE =
  'bring its schema up to date with the migrations of your Web3Signer (flyway), or import a file of its `eth2 export`';

async function checkTables(connection: Connection): Promise<void> {
  const { rows } = await connection.query<{ name: string; is_there: boolean }>(
    'SELECT name, to_regclass(name) IS NOT NULL AS is_there FROM unnest($1::text[]) AS name',
    [WEB3SIGNER_TABLES],
  );
  const missing = rows.filter(({ is_there: isThere }) => !isThere).map(({ name }) => name);
  if (missing.length === 0) return;
  const isAny = missing.length < WEB3SIGNER_TABLES.length;
  const remedy = isAny ? UPGRADE : 'name the database of Web3Signer, and a role whose search_path leads to its tables';
  throw new Web3SignerDatabaseError(`it has no table ${missing.join(', ')}`, remedy);
}

async function versionOf(connection: Connection): Promise<number> {
  const { rows } = await connection.query<{ version: number }>('SELECT version FROM database_version WHERE id = 1');
  const version = rows[0]?.version;
  if (version === undefined) throw new Web3SignerDatabaseError('database_version names no version', UPGRADE);
  if (version < OLDEST_VERSION) {
    throw new Web3SignerDatabaseError(`its schema is of version ${version}, before ${OLDEST_VERSION}`, UPGRADE);
  }
  if (version > NEWEST_VERSION) {
    const remedy = 'use a later strongroom, or import what `web3signer eth2 export` writes';
    throw new Web3SignerDatabaseError(`its schema is of version ${version}, after ${NEWEST_VERSION}`, remedy);
  }
  return version;
}

async function checkNetwork(connection: Connection, genesisValidatorsRoot: Uint8Array): Promise<void> {
  const { rows } = await connection.query<{ root: Uint8Array }>(
    'SELECT genesis_validators_root AS root FROM metadata ORDER BY id LIMIT 2',
  );
  if (rows.length !== 1) {
    const remedy = 'Web3Signer writes it with its first signature or import: there is nothing to import before';
    throw new Web3SignerDatabaseError('metadata does not say of which network it is', remedy);
  }
  if (rows[0] === undefined || Buffer.compare(rows[0].root, genesisValidatorsRoot) !== 0) {
    const remedy = 'name the database of the network that the configuration names';
    throw new Web3SignerDatabaseError(`it is ${ofOtherNetwork(rows[0]?.root, genesisValidatorsRoot)}`, remedy);
  }
}

/** `signed_attestations.validator_id` may be NULL by the schema: such a vote would be left out without a word. */
async function checkOwners(connection: Connection): Promise<void> {
  const { rows } = await connection.query(`
    SELECT FROM signed_attestations WHERE validator_id IS NULL
    UNION ALL SELECT FROM signed_blocks WHERE validator_id IS NULL LIMIT 1`);
  if (rows.length === 0) return;
  throw new Web3SignerDatabaseError(
    'an entry names no validator',
    'find out whose it is: Web3Signer writes no such entry',
  );
}

async function highWatermarkOf(connection: Connection): Promise<HighWatermark> {
  const { rows } = await connection.query<HighWatermark>(
    'SELECT high_watermark_slot::text AS slot, high_watermark_epoch::text AS epoch FROM metadata',
  );
  return rows[0] ?? NO_WATERMARK;
}
