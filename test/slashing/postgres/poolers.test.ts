// PostgreSQL behind a real PgBouncer: a pooler of transactions is refused by name, whatever it does with its processes,
// and one of sessions carries the whole contract of a store, with what docs/guides/postgres.md says is set.

import { hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { systemClock } from '../../../common/observe/clock.ts';
import { runStrongroom } from '../../../rehearsal/signer.ts';
import {
  type Connection,
  PostgresConnections,
  prepared,
} from '../../../signer/slashing/postgres/connection/connections.ts';
import { slashingContract } from '../../contract/slashing.ts';
import { deploy } from '../../support/deployment.ts';
import { lacking } from '../../support/needs.ts';
import { type Pooler, type PoolerSettings, startPooler } from '../../support/pgbouncer.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { block, checkOne, quietLog, verdictName } from '../../support/slashing.ts';
import { addressOf, openTestBackend } from '../../support/slashing-postgres.ts';

const NAMED = /behind a pooler that gives each transaction another session.*pool_mode = session.*postgres\.md#poolers/;
const TRANSACTIONS: PoolerSettings = { pool_mode: 'transaction' };
const IN_TURN: PoolerSettings = { ...TRANSACTIONS, server_round_robin: 1 };
/** As the guide has it, with a process for each connection of each signer. */
const GUIDE = readFileSync(join(import.meta.dirname, '../../../docs/guides/postgres.md'), 'utf8');
const LINES = (/```ini\n\[pgbouncer\]\n(.*?)```/s.exec(GUIDE)?.[1] ?? '').matchAll(/^(\w+) = (\w+)$/gm);
const SESSIONS: PoolerSettings = {
  ...Object.fromEntries([...LINES].map(([, name, value]) => [name, value])),
  default_pool_size: 60,
};

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.close());

const open: Pooler[] = [];
async function pooler(settings: PoolerSettings): Promise<Pooler> {
  const started = await startPooler(server, settings);
  open.push(started);
  return started;
}
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** Has so many made: a pooler makes the least that it keeps when its housekeeping comes by. */
async function processes(url: string, count: number): Promise<void> {
  const clients = Array.from({ length: count }, () => new Client({ connectionString: url }));
  await Promise.all(clients.map((client) => client.connect()));
  await Promise.all(clients.map((client) => client.query('SELECT pg_sleep(0.2)')));
  await Promise.all(clients.map((client) => client.end()));
}

describe.skipIf(lacking('pgbouncer'))('a pooler of transactions', () => {
  it.each<[string, PoolerSettings]>([
    ['with a few processes', { ...TRANSACTIONS, default_pool_size: 3 }],
    ['with one process', { ...TRANSACTIONS, default_pool_size: 1 }],
    ['that takes its two processes in turn', { ...IN_TURN, min_pool_size: 2, default_pool_size: 2 }],
    ['that takes its three processes in turn', { ...IN_TURN, min_pool_size: 3, default_pool_size: 3 }],
    ['that gives each statement another session', { pool_mode: 'statement', default_pool_size: 3 }],
    ['with as many processes as it likes', { ...TRANSACTIONS, default_pool_size: 60, min_pool_size: 20 }],
  ])('%s is refused by name', async (_what, settings) => {
    const { url } = await pooler(settings);
    const database = await server.createDatabase();
    await processes(url(database), Number(settings['min_pool_size'] ?? 0));
    const opened = openTestBackend(url(database));
    await expect(opened).rejects.toMatchObject({
      reason: 'slashing_unavailable',
      hint: expect.stringMatching(NAMED),
    });
    expect(await server.query(database, "SELECT to_regnamespace('strongroom') AS made")).toEqual([{ made: null }]);
  });

  it('is refused beside clients that keep its processes busy', async () => {
    const { url } = await pooler({ ...TRANSACTIONS, default_pool_size: 6 });
    const database = await server.createDatabase();
    const stop = new AbortController();
    const busy = [1, 2, 3].map(async () => {
      const client = new Client({ connectionString: url(database) });
      await client.connect();
      while (!stop.signal.aborted) await client.query('SELECT pg_sleep(0.001)');
      await client.end();
    });
    try {
      for (let attempt = 0; attempt < 5; attempt++) {
        await expect(openTestBackend(url(database))).rejects.toMatchObject({ hint: expect.stringMatching(NAMED) });
      }
    } finally {
      stop.abort();
      await Promise.all(busy);
    }
  });

  it('that was one of sessions is refused by name after its first fault', async () => {
    const { url, console } = await pooler(SESSIONS);
    const backend = await openTestBackend(url(await server.createDatabase()), { poolSize: 1 });
    expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
    await console("SET pool_mode = 'transaction'");
    expect(verdictName(await checkOne(backend, block(1, 2, 'a')))).toBe('safe');
    await console('RECONNECT'); // to processes that have prepared nothing
    const refused = { reason: 'slashing_unavailable' };
    await expect(checkOne(backend, block(1, 3, 'a'))).rejects.toMatchObject({ ...refused, detail: { code: '26000' } });
    const hint = expect.stringMatching(NAMED);
    await expect(checkOne(backend, block(1, 3, 'a'))).rejects.toMatchObject({ ...refused, hint });
    await backend.close();
  });

  it('is named by a start, by --check and by the commands of the store', async () => {
    const { url } = await pooler(TRANSACTIONS);
    const database = url(await server.createDatabase());
    const deployment = deploy(1, { anti_slashing: { backend: 'postgres', url: database } });
    await expect(deployment.start().catch((error: Error) => oneLine(error.message))).resolves.toMatch(NAMED);
    const file = join(deployment.folder, 'own.yaml');
    const ofFile = join(deployment.folder, 'file.yaml');
    writeFileSync(file, stringify(deployment.config));
    writeFileSync(ofFile, stringify(deploy(1).config));
    for (const command of [
      ['server', '--check', '-c', file],
      ['slashing', 'status', '-c', file],
      ['slashing', 'export', '-c', file],
      ['slashing', 'import', '--from-web3signer', database, '-c', ofFile],
    ]) {
      const { stdout, stderr } = await runStrongroom(command);
      expect([command, oneLine(stderr + stdout)]).toEqual([command, expect.stringMatching(NAMED)]);
    }
  });
});

describe('a connection', () => {
  const connectionsTo = (url: string) =>
    new PostgresConnections(
      { address: addressOf(url), poolSize: 1, forceIpv4: false },
      { log: quietLog, clock: systemClock },
    );
  const SETTINGS = ['lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout'];
  const ASK = `SELECT ARRAY[${SETTINGS.map((name) => `current_setting('${name}')`).join(', ')}] AS limits`;

  it('has its time limits, also behind a pooler of sessions that knows none of them', async ({ skip }) => {
    const ways = [server.url];
    const lacks = lacking('pgbouncer');
    if (lacks === undefined) ways.push((await pooler(SESSIONS)).url);
    for (const url of ways) {
      const connections = connectionsTo(url(await server.createDatabase()));
      const limits = await connections.use(async (one) => (await one.query(ASK)).rows[0]?.limits);
      expect(limits).toEqual(['2s', '4s', '4s']);
      const patient = await connections.useUnhurried(async (one) => (await one.query(ASK)).rows[0]?.limits);
      expect(patient).toEqual(['1min', '1min', '1min']);
      await connections.close();
    }
    if (lacks !== undefined) skip(lacks);
  });

  it('has nothing that the last client of its process left', async ({ skip }) => {
    const lacks = lacking('pgbouncer');
    if (lacks !== undefined) return skip(lacks);
    const { url } = await pooler({ pool_mode: 'session', default_pool_size: 2, server_reset_query: '' });
    const database = url(await server.createDatabase());
    const left = Array.from({ length: 2 }, () => new Client({ connectionString: database }));
    await Promise.all(left.map((client) => client.connect()));
    await Promise.all(
      left.map((client) => client.query("SET search_path = 'elsewhere'; CREATE TEMPORARY TABLE staged ()")),
    );
    await Promise.all(left.map((client) => client.end()));
    const connections = connectionsTo(database);
    const found = "SELECT current_setting('search_path') AS path, to_regclass('pg_temp.staged') AS staged";
    const ask = async (one: Connection) => (await one.query(found)).rows[0];
    const nothing = { path: '"$user", public', staged: null };
    expect([await connections.use(ask), await connections.useUnhurried(ask)]).toEqual([nothing, nothing]);
    await connections.close();
  });

  it('prepares statements under names that stand for their texts alone', async () => {
    const connections = connectionsTo(server.url(await server.createDatabase()));
    const texts = ['SELECT 1 AS one', 'SELECT 2 AS one'];
    const found = await connections.use(async (one) => {
      for (const text of texts) await prepared(one, text);
      return (await one.query('SELECT name, statement FROM pg_prepared_statements ORDER BY statement')).rows;
    });
    expect(found).toEqual(texts.map((text) => ({ name: hash('sha256', text, 'base64url'), statement: text })));
    await connections.close();
  });
});

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ');
}

describe.skipIf(lacking('pgbouncer'))('a pooler of sessions', () => {
  let sessions: Pooler;
  const emptied: string[] = [];
  beforeAll(async () => {
    sessions = await startPooler(server, SESSIONS);
  });
  afterAll(() => sessions.close());

  it('is set as the guide has it', () => expect(SESSIONS).toEqual({ pool_mode: 'session', default_pool_size: 60 }));

  slashingContract('postgres behind a pooler of sessions', {
    complete: true,
    manySigners: true,
    async createStore() {
      const database = emptied.pop() ?? (await server.createDatabase());
      return {
        open: (genesisValidatorsRoot) =>
          openTestBackend(sessions.url(database), { genesisValidatorsRoot, poolSize: 7 }),
        async remove() {
          await server.query(database, 'DROP SCHEMA IF EXISTS strongroom CASCADE');
          emptied.push(database);
        },
      };
    },
  });
});
