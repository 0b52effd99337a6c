// The schema that any number of signers bring up to date at once: each step is done once or not at all, and the role
// of docs/guides/postgres.md can do what signers do and nothing else.

import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { NO_INCARNATION, nextIncarnation } from '../../../signer/slashing/incarnation.ts';
import { PostgresConnections } from '../../../signer/slashing/postgres/connection/connections.ts';
import {
  type Migration,
  migrateSchema,
  POSTGRES_MIGRATIONS,
} from '../../../signer/slashing/postgres/tables/migrate.ts';
import type { SlashingBackend } from '../../../signer/slashing/types.ts';
import { guideSql } from '../../support/guide-sql.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import {
  block,
  checkOne,
  collect,
  history,
  publicKeyOf,
  quietLog,
  reinstate,
  retiredKeys,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { addressOf, openTestBackend } from '../../support/slashing-postgres.ts';

const UNAVAILABLE = { reason: 'slashing_unavailable' };

describe('migrations', () => {
  let server: PostgresServer;
  let database: string;
  const opened: { close(): Promise<void> }[] = [];

  beforeAll(async () => {
    server = await startPostgres();
  });

  beforeEach(async () => {
    database = await server.createDatabase();
  });

  afterEach(async () => {
    for (const one of opened.splice(0)) await one.close();
  });

  afterAll(() => server.close());

  const migrateTo = async (migrations: readonly Migration[]) => {
    const address = addressOf(server.url(database));
    const tools = { log: quietLog, clock: systemClock };
    const connections = new PostgresConnections({ address, poolSize: 1, forceIpv4: false }, tools);
    opened.push(connections);
    await connections.useUnhurried((connection) => migrateSchema(connection, NOTHING, migrations));
  };
  const versions = () => server.query(database, 'SELECT version, name FROM strongroom.schema_version ORDER BY version');

  /** These tests look at the steps only. */
  const NOTHING = async (): Promise<void> => {};

  const next: Migration = {
    version: POSTGRES_MIGRATIONS.length + 1,
    name: 'a later step',
    sql: 'CREATE TABLE strongroom.later (id int)',
  };

  it('are done once, whoever comes first: 8 signers that start at once all serve', async () => {
    const backends = await Promise.all(Array.from({ length: 8 }, () => openTestBackend(server.url(database))));
    opened.push(...backends);
    const verdicts = await Promise.all(backends.map((backend) => checkOne(backend, block(1, 1, 'a'))));
    expect(verdicts.map(verdictName).toSorted()).toEqual([...Array(7).fill('repeat'), 'safe']);
    expect(await versions()).toEqual(POSTGRES_MIGRATIONS.map(({ version, name }) => ({ version, name })));
  });

  it('8 processes that bring an older database up to date do each step once', async () => {
    await migrateTo(POSTGRES_MIGRATIONS);
    await Promise.all(Array.from({ length: 8 }, () => migrateTo([...POSTGRES_MIGRATIONS, next])));
    expect(await versions()).toHaveLength(POSTGRES_MIGRATIONS.length + 1);
  });

  it('a database of a newer version is refused and left alone', async () => {
    await migrateTo([...POSTGRES_MIGRATIONS, next]);
    await expect(openTestBackend(server.url(database))).rejects.toThrow('newer version');
    expect(await versions()).toHaveLength(POSTGRES_MIGRATIONS.length + 1);
  });

  it('a step that differs from the one that was applied is refused', async () => {
    await migrateTo([...POSTGRES_MIGRATIONS, next]);
    const changed = { ...next, sql: `${next.sql} -- changed` };
    await expect(migrateTo([...POSTGRES_MIGRATIONS, changed])).rejects.toThrow('not the one of this program');
  });

  it('a step that fails leaves nothing of itself or of the steps beside it', async () => {
    const broken: Migration = { ...next, sql: 'CREATE TABLE strongroom.later (id int); SELECT 1 / 0' };
    await expect(migrateTo([...POSTGRES_MIGRATIONS, broken])).rejects.toMatchObject(UNAVAILABLE);
    const schemas = await server.query(database, "SELECT to_regnamespace('strongroom')::text AS name");
    expect(schemas).toEqual([{ name: null }]);
    await migrateTo(POSTGRES_MIGRATIONS);
  });

  describe('the role of the signers, as docs/guides/postgres.md makes it', () => {
    let backend: SlashingBackend;
    const url = () => `postgres://signer:signer@127.0.0.1:${server.port}/${database}?sslmode=disable`;

    beforeAll(() => server.query('postgres', "CREATE ROLE signer LOGIN PASSWORD 'signer'"));

    beforeEach(async () => {
      await (await openTestBackend(server.url(database))).close();
      await server.query(database, guideSql('signer role').replace('ON DATABASE slashing', `ON DATABASE ${database}`));
      backend = await openTestBackend(url());
      opened.push(backend);
    });

    it('serves everything that signers do', async () => {
      expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(1, 1, 2, 'a')))).toBe('safe');
      await backend.importHistories(stream([history(1, [[1, 'b']], [[1, 2, 'b']]), history(2, [[9, null]], [])]));
      await checkOne(backend, block(1, 1_000_000, 'far'));
      expect(await backend.pruneStep(10)).toBe(1);
      await backend.endTenures([publicKeyOf(3)]);
      expect(await reinstate(backend, [publicKeyOf(3)])).toEqual([publicKeyOf(3)]);
      expect(await retiredKeys(backend)).toEqual([]);
      expect(await backend.incarnate(NO_INCARNATION, nextIncarnation(NO_INCARNATION, null))).toBe(true);
      await backend.jump({ slot: 5, sourceEpoch: 0, targetEpoch: 0 });
      expect(await collect(backend.exportHistories())).toHaveLength(3);
      await backend.checkHealth(new AbortController().signal);
      expect(await backend.status()).toMatchObject({ validators: 2 });
    });

    it.each([
      'DELETE FROM strongroom.validators',
      'DELETE FROM strongroom.store',
      'INSERT INTO strongroom.store SELECT * FROM strongroom.store',
      'UPDATE strongroom.validators SET public_key = public_key',
      'UPDATE strongroom.blocks SET slot = slot',
      'UPDATE strongroom.binding SET code = code',
      'INSERT INTO strongroom.schema_version VALUES (99)',
      'TRUNCATE strongroom.blocks',
      'TRUNCATE strongroom.validators CASCADE',
      'DROP TABLE strongroom.blocks',
      'ALTER TABLE strongroom.validators DROP COLUMN code',
      'CREATE TABLE strongroom.mine (id int)',
      'CREATE SCHEMA mine',
    ])('may not: %s', async (text) => {
      const client = new Client({ connectionString: url() });
      await client.connect();
      opened.push({ close: () => client.end() });
      await expect(client.query(text)).rejects.toThrow(/permission denied|must be owner/);
    });
  });
});
