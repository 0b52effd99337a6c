// How the backend reaches PostgreSQL: TLS with the certificate and its name verified, passwords that stay out of
// errors and logs, and connections that end.

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { inspect } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../common/observe/clock.ts';
import { PostgresConnections } from '../../../../signer/slashing/postgres/connection/connections.ts';
import { type PostgresServer, startPostgres } from '../../../support/postgres.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { block, checkOne, quietLog, verdictName } from '../../../support/slashing.ts';
import { addressOf, openTestBackend } from '../../../support/slashing-postgres.ts';

const UNAVAILABLE = { reason: 'slashing_unavailable' };

describe('connecting', () => {
  let server: PostgresServer;
  let database: string;

  beforeAll(async () => {
    server = await startPostgres({ tls: true });
    database = await server.createDatabase();
  });

  afterAll(() => server.close());

  it('a server that is gone without a word does not keep connections from being closed', async () => {
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

  it('a request that waits for a connection is refused when they are closed, not when its time is over', async () => {
    const connections = new PostgresConnections(
      {
        ...{ address: addressOf(server.url(database, 'sslmode=require')), poolSize: 1, forceIpv4: false },
        timeouts: { connectMs: 3_600_000 },
      },
      { log: quietLog, clock: systemClock },
    );
    const using = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const used = connections.use(async () => {
      begun.resolve();
      await using.promise;
    });
    await begun.promise;
    const waiting = connections.use(async () => 'a connection');
    const closed = connections.close();
    await expect(waiting).rejects.toMatchObject(UNAVAILABLE);
    using.resolve();
    await Promise.all([used, closed]);
  });

  const verdictOver = async (parameters: string, host = 'localhost', forceIpv4 = false) => {
    const backend = await openTestBackend(server.url(database, parameters, host), { forceIpv4 });
    try {
      return verdictName(await checkOne(backend, block(1, 1, 'a')));
    } finally {
      await backend.close();
    }
  };

  it('TLS with a trusted certificate and its name works, in every mode, and so does none', async () => {
    const trusted = `sslrootcert=${server.certificateFile}`;
    for (const parameters of [trusted, `sslmode=verify-full&${trusted}`, 'sslmode=require', 'sslmode=disable']) {
      expect(await verdictOver(parameters)).toMatch(/safe|repeat/);
    }
  });

  it('an untrusted certificate is refused by default, by verify-ca and by verify-full', async () => {
    const stranger = `sslrootcert=${server.strangerCertificateFile}`;
    for (const parameters of ['', stranger, `sslmode=verify-ca&${stranger}`, `sslmode=require&${stranger}`]) {
      await expect(verdictOver(parameters)).rejects.toMatchObject(UNAVAILABLE);
    }
  });

  it('a certificate for another name is refused by verify-full and accepted by verify-ca', async () => {
    const trusted = `sslrootcert=${server.certificateFile}`;
    await expect(verdictOver(trusted, '127.0.0.1')).rejects.toMatchObject(UNAVAILABLE);
    expect(await verdictOver(`sslmode=verify-ca&${trusted}`, '127.0.0.1')).toMatch(/safe|repeat/);
  });

  it('sessions really are encrypted, unless sslmode=disable', async () => {
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

  it('force_ipv4 looks names up for IPv4 only, and the name is still the one that is verified', async () => {
    expect(await verdictOver(`sslrootcert=${server.certificateFile}`, 'localhost', true)).toMatch(/safe|repeat/);
  });

  it('force_ipv4 never reaches a listener that has only IPv6', async ({ skip }) => {
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

  it('a file of root certificates that cannot be read stops the start', async () => {
    await expect(verdictOver('sslrootcert=does-not-exist.pem')).rejects.toThrow('does-not-exist.pem');
  });

  it('a wrong password is refused, and appears neither in the error nor in the log', async () => {
    const log = recordingLog();
    const url = server.url(database).replace(encodeURIComponent(server.password), 'wr0ng-passw0rd');
    const error = await openTestBackend(url, { log }).catch((fault: unknown) => fault);
    expect(error).toMatchObject(UNAVAILABLE);
    expect(log.lines).not.toEqual([]);
    const everything = inspect([error, log.lines], { depth: null, showHidden: true });
    expect(everything).toContain('password authentication failed');
    expect(everything).not.toContain('wr0ng-passw0rd');
  });

  it('the environment and the password file of PostgreSQL are not read', async () => {
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

  it('whoever waits for a connection of its own when the store is closed is told, and does not wait for ever', async () => {
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

  it('sslmode=require is warned about, and so is a database with fsync off', async () => {
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
