// A real PostgreSQL for tests, as a server that can be stopped, crashed, copied and followed by a standby.
// PostgreSQL refuses root, so under root it runs as `nobody` on a directory of its own, which goes with the server.

import { type ChildProcess, execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { LONGEST_WAIT_MS } from './patience.ts';
import {
  type Account,
  findInstallation,
  type Installation,
  initialise,
  own,
  type PostgresOptions,
  USER,
  unprivilegedAccount,
} from './postgres-installation.ts';
import { exited, freePort, launch } from './postgres-process.ts';

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

const MAX_PORT_ATTEMPTS = 5;
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
      child ??= await launchAgain(() => launch(installation, account, data, port));
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

/** Another process of this machine may use the port meanwhile: a client that calls from it, for as long as it does. */
async function launchAgain(start: () => Promise<ChildProcess>): Promise<ChildProcess> {
  const end = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (!String(error).includes('Address already in use') || performance.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + LONGEST_WAIT_MS;
  while (!(await isTrue())) {
    if (performance.now() > end) throw new Error('a standby does not do what it should');
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
