// Databases of Web3Signer on one PostgreSQL of the file, merged into an SQLite store that is new for every test.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, vi } from 'vitest';
import { systemClock } from '../../common/observe/clock.ts';
import { mergeWeb3Signer, readWeb3Signer } from '../../service/web3signer/records.ts';
import { PostgresConnections } from '../../signer/slashing/postgres/connection/connections.ts';
import { openSqliteBackend } from '../../signer/slashing/sqlite/backend.ts';
import type { SlashingBackend } from '../../signer/slashing/types.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { collect, MAIN_ROOT, quietLog } from '../support/slashing.ts';
import { addressOf } from '../support/slashing-postgres.ts';
import {
  createWeb3SignerDatabase,
  fillWithDuties,
  type SchemaOptions,
  type Web3SignerDatabase,
} from '../support/web3signer-database.ts';

export let server: PostgresServer;
export let folder: string;
export let backend: SlashingBackend;
const open: { close(): Promise<unknown> }[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { max_prepared_transactions: '2', fsync: 'off' } });
});
afterAll(() => server?.close());

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-web3signer-'));
  backend = await openSqliteBackend(
    { path: join(folder, 'slashing.sqlite'), genesisValidatorsRoot: MAIN_ROOT, integrityKey: undefined },
    { log: quietLog },
  );
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()));
  await backend.close();
  rmSync(folder, { recursive: true });
});

/** A session that was closed is still listed for a moment. */
export async function settled({ name }: Web3SignerDatabase, sessions = 0): Promise<void> {
  const listed = 'SELECT FROM pg_stat_activity WHERE datname = $1 AND usesysid IS NOT NULL';
  await vi.waitUntil(async () => (await server.query('postgres', listed, [name])).length === sessions, LONGEST_WAIT_MS);
}

export async function merge(database: Web3SignerDatabase) {
  const { name } = database;
  const connections = new PostgresConnections(
    { address: addressOf(server.url(name)), poolSize: 1, forceIpv4: false },
    { log: quietLog, clock: systemClock },
  );
  open.push(connections);
  const root = Buffer.from(MAIN_ROOT.slice(2), 'hex');
  const reading = readWeb3Signer(connections, { genesisValidatorsRoot: root, looksApartMs: 0 });
  const summary = await mergeWeb3Signer(backend, reading, { strategy: 'minimal' });
  return { summary, findings: reading.findings() };
}

export async function records() {
  const { validators, blocks, attestations } = await backend.status();
  return { validators, blocks, attestations, histories: await collect(backend.exportHistories()) };
}

/** Refused as a whole: the store has no record afterwards. */
export async function expectRefused(database: Web3SignerDatabase, problem: RegExp): Promise<void> {
  await expect(merge(database)).rejects.toThrow(problem);
  expect(await records()).toEqual({ validators: 0, blocks: 0, attestations: 0, histories: [] });
}

export async function small(options?: SchemaOptions): Promise<Web3SignerDatabase> {
  const database = await createWeb3SignerDatabase(server, options);
  await fillWithDuties(database, { validators: 2, epochs: 16 });
  await settled(database);
  return database;
}

export async function session({ name }: Web3SignerDatabase): Promise<Client> {
  const client = new Client({ connectionString: server.url(name) });
  await client.connect();
  open.push({ close: () => client.end() });
  return client;
}
