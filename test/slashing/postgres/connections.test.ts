// How the backend reaches PostgreSQL: the URL, TLS, passwords, and the schema that any number of signers bring up to
// date at once.

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parsePostgresUrl } from '../../../enclave/slashing/postgres/address.ts';
import { PostgresConnections } from '../../../enclave/slashing/postgres/connections.ts';
import { migrate, type StepWork } from '../../../enclave/slashing/postgres/migrate.ts';
import { type Migration, POSTGRES_MIGRATIONS } from '../../../enclave/slashing/postgres/migrations.ts';
import type { SlashingBackend } from '../../../enclave/slashing/types.ts';
import { systemClock } from '../../../observe/clock.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres.ts';
import { recordingLog } from '../../support/recording-log.ts';
import {
  block,
  checkOne,
  collect,
  history,
  publicKeyOf,
  quietLog,
  stream,
  verdictName,
  vote,
} from '../../support/slashing.ts';
import { addressOf, openTestBackend } from '../../support/slashing-postgres.ts';

/** The statements of the guide that begin with this comment. */
function guideSql(name: string): string {
  const guide = readFileSync(new URL('../../../docs/guides/postgres.md', import.meta.url), 'utf8');
  const [, statements] = guide.split(`-- ${name}\n`);
  if (statements === undefined) throw new Error(`the guide has no statements "${name}"`);
  return statements.slice(0, statements.indexOf('```'));
}

const UNAVAILABLE = { reason: 'slashing_unavailable' };

describe('the connection URL', () => {
  const good = 'postgres://signer:secret@db.example:6432/slashing';

  test('gives host, port, user, password and database, with escapes decoded', () => {
    expect(parsePostgresUrl('postgresql://us%40er:p%3Ass%23@[::1]/slash%20ing?sslmode=disable')).toEqual({
      kind: 'address',
      host: '::1',
      port: 5432,
      user: 'us@er',
      password: 'p:ss#',
      database: 'slash ing',
      tls: 'disable',
      rootCertificateFile: undefined,
    });
    expect(parsePostgresUrl(good)).toMatchObject({ host: 'db.example', port: 6432, password: 'secret' });
  });

  test('without sslmode means TLS with the certificate and the name verified', () => {
    expect(parsePostgresUrl(good)).toMatchObject({ tls: 'verify-full' });
    expect(parsePostgresUrl(`${good}?sslrootcert=ca.pem`)).toMatchObject({
      tls: 'verify-full',
      rootCertificateFile: 'ca.pem',
    });
  });

  test('sslmode=require with sslrootcert means verify-ca, as in libpq', () => {
    expect(parsePostgresUrl(`${good}?sslmode=require`)).toMatchObject({ tls: 'require' });
    expect(parsePostgresUrl(`${good}?sslmode=require&sslrootcert=ca.pem`)).toMatchObject({ tls: 'verify-ca' });
  });

  test.each([
    'db.example',
    'mysql://signer:secret@db.example/slashing',
    'postgres:///slashing',
    'postgres://db.example/slashing',
    'postgres://signer:secret@db.example',
    'postgres://signer:secret@db.example/one/two',
    'postgres://signer:sec%rt@db.example/slashing',
    'postgres://signer:sec#ret@db.example/slashing',
    `${good}?sslmode=prefer`,
    `${good}?sslmode=allow`,
    `${good}?sslmode=VERIFY-FULL`,
    `${good}?sslmode=`,
    `${good}?sslmode=disable&sslmode=verify-full`,
    `${good}?sslmode=disable&sslrootcert=ca.pem`,
    `${good}?sslrootcert=`,
    `${good}?host=elsewhere.example`,
    `${good}?ssl=false`,
  ])('%s is refused, and the problem does not repeat it', (url) => {
    const reading = parsePostgresUrl(url);
    expect(reading.kind).toBe('invalid');
    expect(inspect(reading)).not.toMatch(/secret|sec%rt|example/);
  });
});

describe('connecting', () => {
  let server: PostgresServer;
  let database: string;

  beforeAll(async () => {
    server = await startPostgres({ tls: true });
    database = await server.createDatabase();
  });

  afterAll(() => server.close());

  test('a server that is gone without a word does not keep connections from being closed', async () => {
    const sockets: Socket[] = [];
    const gone = createServer({ allowHalfOpen: true }, (client) => {
      const upstream = connect({ port: server.port, host: '127.0.0.1' });
      sockets.push(client, upstream);
      client.on('error', () => undefined).on('data', (bytes) => (isSilent ? undefined : upstream.write(bytes)));
      upstream.on('error', () => undefined).on('data', (bytes) => (isSilent ? undefined : client.write(bytes)));
    });
    let isSilent = false;
    await once(gone.listen(0, '127.0.0.1'), 'listening');
    const address = {
      ...addressOf(server.url(database, 'sslmode=require')),
      port: (gone.address() as AddressInfo).port,
    };
    const connections = new PostgresConnections(
      { address, poolSize: 1, forceIpv4: false },
      { log: quietLog, clock: systemClock },
    );
    await connections.use((connection) => connection.query('SELECT 1'));
    const session = await connections.openUnhurried();
    isSilent = true;
    await expect(Promise.all([connections.close(50), session.close()])).resolves.toHaveLength(2);
    for (const socket of sockets) socket.destroy();
    gone.close();
  });

  const verdictOver = async (parameters: string, host = 'localhost', forceIpv4 = false) => {
    const backend = await openTestBackend(server.url(database, parameters, host), { forceIpv4 });
    try {
      return verdictName(await checkOne(backend, block(1, 1, 'a')));
    } finally {
      await backend.close();
    }
  };

  test('TLS with a trusted certificate and its name works, in every mode, and so does none', async () => {
    const trusted = `sslrootcert=${server.certificateFile}`;
    for (const parameters of [trusted, `sslmode=verify-full&${trusted}`, 'sslmode=require', 'sslmode=disable']) {
      expect(await verdictOver(parameters)).toMatch(/safe|repeat/);
    }
  });

  test('an untrusted certificate is refused by default, by verify-ca and by verify-full', async () => {
    const stranger = `sslrootcert=${server.strangerCertificateFile}`;
    for (const parameters of ['', stranger, `sslmode=verify-ca&${stranger}`, `sslmode=require&${stranger}`]) {
      await expect(verdictOver(parameters)).rejects.toMatchObject(UNAVAILABLE);
    }
  });

  test('a certificate for another name is refused by verify-full and accepted by verify-ca', async () => {
    const trusted = `sslrootcert=${server.certificateFile}`;
    await expect(verdictOver(trusted, '127.0.0.1')).rejects.toMatchObject(UNAVAILABLE);
    expect(await verdictOver(`sslmode=verify-ca&${trusted}`, '127.0.0.1')).toMatch(/safe|repeat/);
  });

  test('sessions really are encrypted, unless sslmode=disable', async () => {
    const session = async (parameters: string) => {
      const address = addressOf(server.url(database, parameters, 'localhost'));
      const tools = { log: quietLog, clock: systemClock };
      const connections = new PostgresConnections({ address, poolSize: 1, forceIpv4: true }, tools);
      const text = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
      const { rows } = await connections.use((connection) => connection.query(text));
      await connections.close();
      return rows[0]?.ssl;
    };
    expect(await session(`sslrootcert=${server.certificateFile}`)).toBe(true);
    expect(await session('sslmode=require')).toBe(true);
    expect(await session('sslmode=disable')).toBe(false);
  });

  test('force_ipv4 looks names up for IPv4 only, and the name is still the one that is verified', async () => {
    expect(await verdictOver(`sslrootcert=${server.certificateFile}`, 'localhost', true)).toMatch(/safe|repeat/);
  });

  test('force_ipv4 never reaches a listener that has only IPv6', async ({ skip }) => {
    const addresses = await lookup('localhost', { all: true });
    if (!addresses.some(({ family }) => family === 6)) skip('localhost has no IPv6 address here');
    let connections = 0;
    const listener = createServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => listener.listen(0, '::1', resolve));
    const { port } = listener.address() as AddressInfo;
    const url = `postgres://signer:secret@localhost:${port}/slashing?sslmode=disable`;
    await expect(openTestBackend(url, { forceIpv4: true })).rejects.toMatchObject(UNAVAILABLE);
    expect(connections).toBe(0);
    await expect(openTestBackend(url)).rejects.toMatchObject(UNAVAILABLE);
    expect(connections).toBe(1);
    await new Promise((resolve) => listener.close(resolve));
  });

  test('a file of root certificates that cannot be read stops the start', async () => {
    await expect(verdictOver('sslrootcert=does-not-exist.pem')).rejects.toThrow('does-not-exist.pem');
  });

  test('a wrong password is refused, and appears neither in the error nor in the log', async () => {
    const log = recordingLog();
    const url = server.url(database).replace(encodeURIComponent(server.password), 'wr0ng-passw0rd');
    const error = await openTestBackend(url, { log }).catch((fault: unknown) => fault);
    expect(error).toMatchObject(UNAVAILABLE);
    expect(log.lines).not.toEqual([]);
    const everything = inspect([error, log.lines], { depth: null, showHidden: true });
    expect(everything).toContain('password authentication failed');
    expect(everything).not.toContain('wr0ng-passw0rd');
  });

  test('the environment and the password file of PostgreSQL are not read', async () => {
    const names = { PGPASSWORD: server.password, PGSSLMODE: 'disable', PGHOST: '127.0.0.1' };
    Object.assign(process.env, names);
    try {
      const withoutPassword = server.url(database).replace(`:${encodeURIComponent(server.password)}@`, '@');
      await expect(openTestBackend(withoutPassword)).rejects.toMatchObject(UNAVAILABLE);
      await expect(verdictOver('')).rejects.toMatchObject(UNAVAILABLE);
    } finally {
      for (const name of Object.keys(names)) delete process.env[name];
    }
  });

  test('whoever waits for a connection of its own when the store is closed is told, and does not wait for ever', async () => {
    const waiting = Promise.withResolvers<void>();
    const silent = createServer((socket) => {
      socket.resume(); // it hears the end, and says nothing
      waiting.resolve();
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const address = addressOf(`postgres://signer:secret@127.0.0.1:${port}/slashing?sslmode=disable`);
    const connections = new PostgresConnections(
      { address, poolSize: 1, forceIpv4: false },
      { log: quietLog, clock: systemClock },
    );
    const session = connections.openUnhurried().then(
      () => 'a session',
      (error: { reason?: string }) => error.reason,
    );
    await waiting.promise;
    await connections.close();
    expect(await session).toBe('slashing_unavailable');
    await new Promise((resolve) => silent.close(resolve));
  });

  test('sslmode=require is warned about, and so is a database with fsync off', async () => {
    const log = recordingLog();
    await (await openTestBackend(server.url(database, 'sslmode=require'), { log })).close();
    expect(log.lines.map(({ message }) => message).join()).toContain('sslmode=require');
    const careless = await startPostgres({ settings: { fsync: 'off' } });
    try {
      await (await openTestBackend(careless.url(await careless.createDatabase()), { log })).close();
      expect(log.lines.map(({ message }) => message).join()).toContain('fsync=off');
      // A server without TLS is not spoken to in plain text unless the URL says so.
      const plain = careless.url('postgres', 'sslmode=require');
      await expect(openTestBackend(plain)).rejects.toMatchObject(UNAVAILABLE);
    } finally {
      await careless.close();
    }
  });
});

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
    await connections.useUnhurried((connection) => migrate(connection, NO_WORK, migrations));
  };
  const versions = () => server.query(database, 'SELECT version, name FROM strongroom.schema_version ORDER BY version');

  /** These tests look at the steps only. */
  const NO_WORK: StepWork = new Map();

  const next: Migration = {
    version: POSTGRES_MIGRATIONS.length + 1,
    name: 'a later step',
    sql: 'CREATE TABLE strongroom.later (id int)',
  };

  test('are done once, whoever comes first: 8 signers that start at once all serve', async () => {
    const backends = await Promise.all(Array.from({ length: 8 }, () => openTestBackend(server.url(database))));
    opened.push(...backends);
    const verdicts = await Promise.all(backends.map((backend) => checkOne(backend, block(1, 1, 'a'))));
    expect(verdicts.map(verdictName).toSorted()).toEqual([...Array(7).fill('repeat'), 'safe']);
    expect(await versions()).toEqual(POSTGRES_MIGRATIONS.map(({ version, name }) => ({ version, name })));
  });

  test('8 processes that bring an older database up to date do each step once', async () => {
    await migrateTo(POSTGRES_MIGRATIONS);
    await Promise.all(Array.from({ length: 8 }, () => migrateTo([...POSTGRES_MIGRATIONS, next])));
    expect(await versions()).toHaveLength(POSTGRES_MIGRATIONS.length + 1);
  });

  test('a database of a newer version is refused and left alone', async () => {
    await migrateTo([...POSTGRES_MIGRATIONS, next]);
    await expect(openTestBackend(server.url(database))).rejects.toThrow('newer version');
    expect(await versions()).toHaveLength(POSTGRES_MIGRATIONS.length + 1);
  });

  test('a step that differs from the one that was applied is refused', async () => {
    await migrateTo([...POSTGRES_MIGRATIONS, next]);
    const changed = { ...next, sql: `${next.sql} -- changed` };
    await expect(migrateTo([...POSTGRES_MIGRATIONS, changed])).rejects.toThrow('not the one of this program');
  });

  test('a step that fails leaves nothing of itself or of the steps beside it', async () => {
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

    test('serves everything that signers do', async () => {
      expect(verdictName(await checkOne(backend, block(1, 1, 'a')))).toBe('safe');
      expect(verdictName(await checkOne(backend, vote(1, 1, 2, 'a')))).toBe('safe');
      await backend.importHistories(stream([history(1, [[1, 'b']], [[1, 2, 'b']]), history(2, [[9, null]], [])]));
      await checkOne(backend, block(1, 1_000_000, 'far'));
      expect(await backend.pruneStep(10)).toBe(1);
      await backend.retire([publicKeyOf(3)]);
      expect(await backend.reinstate([publicKeyOf(3)])).toEqual([publicKeyOf(3)]);
      expect(await backend.retiredKeys()).toEqual([]);
      await backend.advance();
      await backend.jump({ slot: 5, sourceEpoch: 0, targetEpoch: 0 });
      expect(await collect(backend.exportHistories())).toHaveLength(3);
      expect(await backend.highestMarks()).toMatchObject({ blockSlot: 1_000_000 });
      await backend.checkHealth(new AbortController().signal);
      expect(await backend.status()).toMatchObject({ validators: 2 });
    });

    test.each([
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
