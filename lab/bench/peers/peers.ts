// The signers of `make bench-peers`, each as its own documentation starts it, with the same keys: Dirk with its badger
// store, strongroom with SQLite or PostgreSQL, a Web3Signer that runs already. What durability costs is on for all.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tracked } from '../../../rehearsal/signer.ts';
import { deployKeys } from '../../../test/support/deployment.ts';
import { writeRawKey } from '../../../test/support/keys.ts';
import { type PostgresServer, startPostgres } from '../../../test/support/postgres.ts';
import { TEST_TOKEN, type TestKey } from '../../../test/support/requests.ts';
import { type Certificates, CLIENT_NAME } from './certificates.ts';
import { type ClientOptions, PROGRAMS, writeWallet } from './client.ts';
import { parentOf, treeOf } from './processes.ts';

const PASSPHRASE = 'TEST-passphrase-of-the-bench';
const DIRK_ID = 212_483_780;
const READY_MS = 300_000;

export interface Peer {
  readonly name: string;
  readonly keeps: 'marks' | 'complete history';
  readonly options: Omit<ClientOptions, 'PublicKeys' | 'Parallel'>;
  /** The signer's processes and those of its store. */
  pids(): number[];
  stop(): Promise<void>;
}

export async function startStrongroom(
  program: string,
  keys: readonly TestKey[],
  store: 'sqlite' | 'postgres',
  certificates: Certificates | undefined,
): Promise<Peer> {
  const postgres = store === 'postgres' ? await startPostgres() : undefined;
  const deployment = deployKeys(keys, {
    ...(certificates === undefined ? {} : { tls: mutualTls(certificates) }),
    ...(postgres === undefined ? {} : { anti_slashing: { backend: 'postgres' } }),
  });
  const database = await postgres?.createDatabase();
  const env =
    postgres === undefined || database === undefined ? {} : { SVC_ANTI_SLASHING__URL: postgres.url(database) };
  const signer = await deployment.start({ program: [program], env, keepsLog: false });
  const postmaster = await postmasterOf(postgres);
  return {
    name: `strongroom (${store})`,
    keeps: 'complete history',
    options:
      certificates === undefined
        ? { Server: 'strongroom', URL: signer.url, Token: TEST_TOKEN }
        : { Server: 'strongroom', URL: signer.tlsUrl ?? '' },
    pids: () => [...treeOf(signer.pid), ...(postmaster === undefined ? [] : treeOf(postmaster))],
    async stop() {
      await signer.stop();
      await postgres?.close();
      rmSync(deployment.folder, { recursive: true, force: true });
    },
  };
}

function mutualTls({ authority, server }: Certificates): object {
  return {
    ...{ mode: 'file', listen_address: '127.0.0.1', listen_port: 0, client_auth: 'required', client_ca: authority },
    file: { cert_path: server.cert, key_path: server.key },
    known_clients: [{ name: CLIENT_NAME, subject: `CN=${CLIENT_NAME}`, policies: ['full'] }],
  };
}

/** The parent of each of its processes. */
async function postmasterOf(postgres: PostgresServer | undefined): Promise<number | undefined> {
  const text = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
  const [row] = (await postgres?.query('postgres', text)) ?? [];
  return row === undefined ? undefined : parentOf(Number(row['pid']));
}

/**
 * A Web3Signer that runs on this machine already.
 * @param store the process that its database's processes come from, in digits
 * @throws without one, and with where the keys of this benchmark are when it has not loaded all of them
 */
export async function runningWeb3Signer(url: string, keys: readonly TestKey[], store = ''): Promise<Peer> {
  const storePid = Number(store);
  if (!/^[1-9]\d*$/.test(store) || treeOf(storePid).length < 2)
    throw new Error(`STORE=${store} is not the first process of a database: it is in its postmaster.pid`);
  const { port } = new URL(url);
  const [, pid] =
    /pid=(\d+)/.exec(execFileSync('ss', ['-Hltnp', `sport = :${port || 80}`], { encoding: 'utf8' })) ?? [];
  if (pid === undefined) throw new Error(`no process of this machine that you may see listens where ${url} says`);
  const answer = await fetch(new URL('/api/v1/eth2/publicKeys', url));
  const loaded = new Set((await answer.json()) as string[]);
  if (!keys.every(({ publicKey }) => loaded.has(publicKey))) {
    const folder = join(PROGRAMS, 'web3signer-keys');
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    for (const [index, { secret }] of keys.entries())
      writeRawKey(folder, `test-${index}`, Buffer.from(secret.slice(2), 'hex'));
    throw new Error(
      `the Web3Signer at ${url} has not the ${keys.length} TEST keys: start it with --key-store-path=${folder}`,
    );
  }
  return {
    name: 'Web3Signer',
    keeps: 'complete history',
    options: { Server: 'strongroom', URL: url },
    pids: () => [...treeOf(Number(pid)), ...treeOf(storePid)],
    async stop() {},
  };
}

/** @param client the program that writes its wallet */
export async function startDirk(
  programs: { readonly dirk: string; readonly client: string },
  keys: readonly TestKey[],
  { authority, server }: Certificates,
): Promise<Peer> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-dirk-'));
  for (const name of ['wallets', 'protection']) mkdirSync(join(folder, name), { mode: 0o700 });
  writeWallet(
    programs.client,
    join(folder, 'wallets'),
    PASSPHRASE,
    keys.map(({ secret }) => secret),
  );
  writeFileSync(join(folder, 'passphrase.txt'), PASSPHRASE);
  const port = await freePort();
  const file = (path: string): string => `file://${path}`;
  // What Dirk's pages "Getting started" and "Configuration" recommend, and nothing that slows it down: no metrics, no
  // traces, and its usual level of logs.
  const config = {
    server: { id: DIRK_ID, name: 'localhost', 'listen-address': `127.0.0.1:${port}` },
    certificates: { 'ca-cert': file(authority), 'server-cert': file(server.cert), 'server-key': file(server.key) },
    'storage-path': join(folder, 'protection'),
    stores: [{ name: 'Local', type: 'filesystem', location: join(folder, 'wallets') }],
    peers: { [DIRK_ID]: `localhost:${port}` },
    unlocker: { 'account-passphrases': [file(join(folder, 'passphrase.txt'))] },
    permissions: { [CLIENT_NAME]: { peers: 'All' } },
    'log-level': 'Info',
  };
  writeFileSync(join(folder, 'dirk.json'), JSON.stringify(config));
  const child = tracked(
    spawn(programs.dirk, ['--base-dir', folder], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] }),
  );
  await operational(child);
  return {
    name: 'Dirk',
    keeps: 'marks',
    options: { Server: 'dirk', Port: port },
    pids: () => treeOf(child.pid ?? 0),
    async stop() {
      if (child.exitCode === null) {
        child.kill('SIGTERM');
        await once(child, 'exit');
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Until it says so itself. What it logs later is read and thrown away, as with strongroom. */
function operational(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const timer = setTimeout(() => reject(new Error(`Dirk is not operational: ${text}`)), READY_MS);
    child.once('exit', (code) => reject(new Error(`Dirk ended with ${code}: ${text}`)));
    const take = (part: string): void => {
      text = (text + part).slice(-10_000);
      if (!text.includes('All services operational')) return;
      clearTimeout(timer);
      resolve();
    };
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', take);
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
