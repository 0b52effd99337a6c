// The matrix of docs/reliability.md: each backing service in each kind of fault, behind the real program. During the
// fault nothing is signed without its record, and what does not need the service goes on; after it the signer signs
// again by itself, and refuses what rivals anything that it released meanwhile. Cells that other tests have are linked
// from the page.

import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { makeExpiredCertificate } from '../support/certificates.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { lacking } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { attestation, call, randaoReveal, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';
import { IS_WHOLE, sized, someOf } from '../support/scale.ts';
import { noStrace, type SlowDisk, slowDisk } from '../support/slow-disk.ts';
import { startTcpFaults, type TcpFault, type TcpFaults } from '../support/tcp-faults.ts';

const FAULTS = ['refuses', 'stands still', 'is slow', 'answers garbage', 'cuts its answers'] as const;
const STORES = ['postgres', 'dynamodb'] as const;
const CLOCK = join(import.meta.dirname, '../support/faulty-clock.ts');
/** Of a signer that stands still while another one signs: a minute at the whole size. */
const FROZEN_MS = sized(3_000, 60_000);
const SHORT = { request_timeout_seconds: 3, health_check: { poll_interval_seconds: 1 } };
const POLL = { timeout: LONGEST_WAIT_MS, interval: 250 };

let postgres: PostgresServer;
let custody: CustodyWorld;
const running: RunningSigner[] = [];
const proxies: TcpFaults[] = [];
let stores = 0;

beforeAll(async () => {
  [postgres, custody] = await Promise.all([startPostgres(), startCustody()]);
});
afterAll(() => Promise.all([postgres.close(), custody.close()]));
afterEach(async () => {
  await Promise.all(running.splice(0).map((signer) => signer.kill()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.close()));
});

interface Shared {
  readonly config: Record<string, unknown>;
  readonly env: Readonly<Record<string, string>>;
}

async function faultsFor(port: number): Promise<TcpFaults> {
  const proxy = await startTcpFaults(port);
  proxies.push(proxy);
  return proxy;
}

async function sharedStore(store: (typeof STORES)[number]): Promise<Shared & { readonly proxy: TcpFaults }> {
  if (store === 'postgres') {
    const proxy = await faultsFor(postgres.port);
    const url = postgres.url(await postgres.createDatabase()).replace(`:${postgres.port}/`, `:${proxy.port}/`);
    return { proxy, config: { anti_slashing: { backend: store } }, env: { SVC_ANTI_SLASHING__URL: url } };
  }
  const proxy = await faultsFor(Number(new URL(custody.dynamodb.endpoint).port));
  stores += 1;
  const table = `fault_matrix_${stores}`;
  await custody.dynamodb.createTable(tableDefinition(table));
  const env = custody.environment({ dynamodb: `http://127.0.0.1:${proxy.port}` });
  return { proxy, config: { anti_slashing: { backend: store, table } }, env };
}

async function start(deployment: Deployment, { config, env }: Shared): Promise<RunningSigner> {
  const signer = await deployment.start({ config: { server: SHORT, ...config }, env });
  running.push(signer);
  return signer;
}

const keyOf = ({ keys }: Deployment): string => keys[0]?.publicKey ?? '';
const vote = (target: number, head: number) => attestation({ source: target - 1, target, head: rootOf(head) });

async function statusOf(signer: RunningSigner, key: string, body: object): Promise<number> {
  return (await signCall(signer.url, key, body)).status;
}

/** The status of a vote over this connection alone: `fetch` may open another one while an answer of it ends. */
function statusOver(agent: Agent, signer: RunningSigner, key: string, body: object): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const headers = { authorization: `Bearer ${TEST_TOKEN}`, 'content-type': 'application/json' };
  request(`${signer.url}/api/v1/eth2/sign/${key}`, { agent, headers, method: 'POST' }, (response) => {
    response
      .resume()
      .on('end', () => resolve(response.statusCode))
      .on('error', reject);
  })
    .on('error', reject)
    .end(JSON.stringify(body));
  return promise;
}

/** What the signer decides: 503 at the short limit of a request is asked again, as a busy machine may reach it. */
async function verdictOn(signer: RunningSigner, key: string, body: object): Promise<number> {
  let status = 503;
  await expect
    .poll(async () => {
      status = await statusOf(signer, key, body);
      return status;
    }, POLL)
    .not.toBe(503);
  return status;
}

/** 200 for a message that nobody asked for before; each try is another one. */
async function signsAgain(signer: RunningSigner, key: string, from: number): Promise<void> {
  let target = from;
  await expect
    .poll(() => {
      target += 1;
      return statusOf(signer, key, vote(target, 1));
    }, POLL)
    .toBe(200);
}

/** At the small size each fault befalls one of the stores. */
function faultsOf(store: (typeof STORES)[number]): readonly TcpFault[] {
  return IS_WHOLE ? FAULTS : FAULTS.filter((_, index) => STORES[index % STORES.length] === store);
}

describe.each(STORES)('a %s that', (store) => {
  it.each(faultsOf(store))(
    '%s: 503 or a signature whose record stands, and signing by itself afterwards',
    async (fault) => {
      const shared = await sharedStore(store);
      const deployment = deploy(1);
      const key = keyOf(deployment);
      const signer = await start(deployment, shared);
      expect(await verdictOn(signer, key, vote(2, 1))).toBe(200);

      shared.proxy.set(fault);
      const during: [target: number, status: number][] = [];
      for (const target of [3, 4, 5]) during.push([target, await statusOf(signer, key, vote(target, 1))]);
      // What needs no record is signed all the time.
      expect(await verdictOn(signer, key, randaoReveal())).toBe(200);
      for (const [, status] of during) expect([200, 503]).toContain(status);
      // What is only slow answers; what cannot answer signs nothing.
      const signed = during.filter(([, status]) => status === 200);
      if (fault === 'is slow') await signsAgain(signer, key, 5);
      if (fault !== 'is slow') expect(signed).toEqual([]);

      shared.proxy.set(undefined);
      await signsAgain(signer, key, 10);
      for (const [target] of signed) expect(await verdictOn(signer, key, vote(target, 2))).toBe(412);
      expect(await verdictOn(signer, key, vote(2, 2))).toBe(412);
      await expect
        .poll(async () => (await call(`${signer.url}/healthcheck`, { token: null })).json['outcome'], POLL)
        .toBe('UP');
    },
  );

  it('stands still does not hold the end up beyond the one deadline', async () => {
    const shared = await sharedStore(store);
    const deployment = deploy(1);
    const server = { graceful_shutdown_timeout_seconds: 2 };
    const signer = await start(deployment, { ...shared, config: { ...shared.config, server } });
    shared.proxy.set('stands still');
    const before = shared.proxy.connections;
    const answer = signCall(signer.url, keyOf(deployment), vote(3, 1)).catch(() => undefined);
    await pause(0);
    const end = signer.stop();
    expect(await end).not.toBe(70);
    expect((await answer)?.status ?? 0).not.toBe(200);
    await signer.logged('stopped');
    // No connection is begun for a store that does not answer while the process ends.
    expect(shared.proxy.connections - before).toBeLessThanOrEqual(1);
  });

  it('is shared by two signers, of which one stands still and comes back: one vote of the two', async () => {
    const shared = await sharedStore(store);
    const [one, other] = [deploy(1), deploy(1)];
    const key = keyOf(one);
    const first = await start(one, { ...shared, config: { ...shared.config, server: {} } });
    const second = await start(other, shared);
    expect(await verdictOn(first, key, vote(2, 1))).toBe(200);
    const late = Array.from({ length: 8 }, (_, index) => signCall(first.url, key, vote(3 + index, 1)));
    process.kill(first.pid, 'SIGSTOP');
    const meanwhile = [];
    for (let target = 3; target < 11; target++) meanwhile.push(await statusOf(second, key, vote(target, 2)));
    await pause(FROZEN_MS);
    process.kill(first.pid, 'SIGCONT');
    const statuses = (await Promise.all(late)).map(({ status }) => status);
    for (const [index, status] of statuses.entries()) {
      expect([status, meanwhile[index]].filter((one) => one === 200).length).toBeLessThanOrEqual(1);
    }
    expect(meanwhile).toContain(200);
    expect(await verdictOn(first, key, vote(3, 3))).toBe(412);
    await signsAgain(first, key, 20);
  });
});

describe('a PostgreSQL', () => {
  it.skipIf(lacking('ps'))(
    'whose processes are stopped (SIGSTOP) and go on: 503 meanwhile, then signatures',
    async () => {
      const shared = await sharedStore('postgres');
      const deployment = deploy(1);
      const key = keyOf(deployment);
      const signer = await start(deployment, shared);
      expect(await verdictOn(signer, key, vote(2, 1))).toBe(200);
      // Workers of the autovacuum come and go.
      const rows = await postgres.query(
        'postgres',
        "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker'",
      );
      const pids = rows.map(({ pid }) => Number(pid));
      const postmaster = Number(execFileSync('ps', ['-o', 'ppid=', '-p', String(pids[0])], { encoding: 'utf8' }));
      const all = [postmaster, ...pids];
      const signal = (name: 'SIGSTOP' | 'SIGCONT'): void => {
        // One of an earlier test may end.
        for (const pid of all) if (existsSync(`/proc/${pid}`)) process.kill(pid, name);
      };
      signal('SIGSTOP');
      const answer = await signCall(signer.url, key, vote(3, 1)).finally(() => signal('SIGCONT'));
      expect(answer.status).toBe(503);
      await signsAgain(signer, key, 10);
      expect(await verdictOn(signer, key, vote(2, 2))).toBe(412);
    },
  );

  it('with an expired certificate is not spoken to: the signer does not start, and says why', async () => {
    const server = await startPostgres({ tls: true });
    try {
      const folder = dirname(server.certificateFile);
      const { cert, key } = await makeExpiredCertificate(folder, 'expired');
      const owner = execFileSync('stat', ['-c', '%u:%g', server.certificateFile], { encoding: 'utf8' }).trim();
      execFileSync('chown', [owner, cert, key]);
      chmodSync(key, 0o600);
      for (const [name, file] of [
        ['ssl_cert_file', cert],
        ['ssl_key_file', key],
      ]) {
        await server.query('postgres', `ALTER SYSTEM SET ${name} = '${file}'`);
      }
      await server.stop('fast');
      await server.start();
      const url = server.url(await server.createDatabase(), `sslmode=verify-ca&sslrootcert=${cert}`);
      const begun = deploy(1).start({
        config: { anti_slashing: { backend: 'postgres' } },
        env: { SVC_ANTI_SLASHING__URL: url },
      });
      await expect(begun).rejects.toThrow(/expired/i);
    } finally {
      await server.close();
    }
  });
});

async function startStateful({ config, env }: Shared, deployment: Deployment): Promise<RunningSigner> {
  const { static_auth: _none, ...own } = deployment.config;
  const whole = { ...own, server: SHORT, ...config };
  const signer = await startSigner({ folder: deployment.folder, config: whole, env });
  running.push(signer);
  return signer;
}

async function tokenOf({ url }: RunningSigner, table: string): Promise<string> {
  const root = await custody.rootToken(table);
  const rules = [{ effect: 'allow' }];
  await call(`${url}/api/v1/auth/policies`, { token: root, body: { name: 'all', rules } });
  const made = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['all'] } });
  return String(made.json['token']);
}

describe('a KMS that', () => {
  const faults: readonly TcpFault[] = ['refuses', 'stands still', 'answers garbage', 'cuts its answers'];
  it.each(someOf(faults, 1))(
    '%s: a running signer does not need it, one that starts ends, and the next one signs',
    async (fault) => {
      const proxy = await faultsFor(Number(new URL(custody.kms.endpoint).port));
      const table = await custody.createTable();
      const config = custody.configuration(table, custody.createCeremony());
      const shared = { config, env: custody.environment({ kms: `http://127.0.0.1:${proxy.port}` }) };
      const deployment = deploy(1);
      const signer = await startStateful(shared, deployment);
      const token = await tokenOf(signer, table);
      const sign = (one: RunningSigner) => signCall(one.url, keyOf(deployment), randaoReveal(), { token });

      proxy.set(fault);
      await expect.poll(async () => (await sign(signer)).status, POLL).toBe(200);
      await signer.stop();
      await expect(startStateful(shared, deployment)).rejects.toThrow(/exit 1/);

      proxy.set(undefined);
      const next = await startStateful(shared, deployment);
      // At once, or by the jump when the end lies longer back than the bound.
      await expect.poll(async () => (await sign(next)).status, POLL).toBe(200);
    },
  );
});

it('a KMS that is slow delays a start, which then signs', async () => {
  const proxy = await faultsFor(Number(new URL(custody.kms.endpoint).port));
  const table = await custody.createTable();
  const config = custody.configuration(table, custody.createCeremony());
  const shared = { config, env: custody.environment({ kms: `http://127.0.0.1:${proxy.port}` }) };
  const deployment = deploy(1);
  const first = await startStateful(shared, deployment);
  const token = await tokenOf(first, table);
  await first.stop();

  proxy.set('is slow');
  const asked = proxy.connections;
  const next = await startStateful(shared, deployment);
  expect(proxy.connections).toBeGreaterThan(asked);
  const sign = () => signCall(next.url, keyOf(deployment), randaoReveal(), { token });
  await expect.poll(async () => (await sign()).status, POLL).toBe(200);
});

// A signer is not dumpable: only root may look at it.
describe.skipIf(noStrace() ?? lacking('root'))('a slow disk under sqlite', () => {
  const deployment = deploy(2);
  let signer: RunningSigner;
  let disk: SlowDisk | undefined;
  beforeAll(async () => {
    signer = await deployment.start({ config: { server: SHORT } });
  });
  afterEach(() => disk?.end());
  afterAll(() => signer.kill());

  it('delays signatures that need a record, and no others', async () => {
    const key = keyOf(deployment);
    disk = await slowDisk(signer.pid, 500);
    const voting = Promise.withResolvers<number>();
    void statusOf(signer, key, vote(2, 1)).then(voting.resolve, voting.reject);
    expect(await verdictOn(signer, key, randaoReveal())).toBe(200);
    // A machine that is slow, too, may reach the request's limit of three seconds.
    expect([200, 503]).toContain(await voting.promise);
    await expect.poll(() => disk?.delayed(), POLL).toBeGreaterThan(0);
    await signsAgain(signer, key, 3);
  });

  it('slower than a request may take: 503, nothing released twice, and signing by itself afterwards', async () => {
    const key = deployment.keys[1]?.publicKey ?? '';
    expect(await verdictOn(signer, key, vote(2, 1))).toBe(200);
    disk = await slowDisk(signer.pid, 2 * 1000 * SHORT.request_timeout_seconds);
    const late = await signCall(signer.url, key, vote(3, 1));
    // It may be recorded, and signed, after its answer.
    expect(late).toMatchObject({ status: 503, json: { message: expect.stringContaining('no signature is sent') } });
    expect(await verdictOn(signer, key, randaoReveal())).toBe(200);
    await expect.poll(() => disk?.delayed(), POLL).toBeGreaterThan(0);
    await disk.end();
    disk = undefined;
    await signsAgain(signer, key, 10);
    expect(await verdictOn(signer, key, vote(2, 2))).toBe(412);
  });
});

describe('a signer state and a key table that', () => {
  it.each(someOf(FAULTS, 2))(
    '%s: no signature without a fresh state, and signing by itself afterwards',
    async (fault) => {
      const proxy = await faultsFor(Number(new URL(custody.dynamodb.endpoint).port));
      const table = await custody.createTable();
      stores += 1;
      const keyTable = `fault_keys_${stores}`;
      await custody.dynamodb.createTable(keyTableDefinition(keyTable));
      const deployment = deploy(1);
      const key_sources = { ...(deployment.config['key_sources'] as object), dynamodb: { table: keyTable } };
      const config = { ...custody.configuration(table, custody.createCeremony()), key_sources };
      const env = custody.environment({ dynamodb: `http://127.0.0.1:${proxy.port}` });
      const signer = await startStateful({ config, env }, deployment);
      const token = await tokenOf(signer, table);
      const sign = async (body: object) => (await signCall(signer.url, keyOf(deployment), body, { token })).status;
      await expect.poll(() => sign(randaoReveal()), POLL).toBe(200);

      proxy.set(fault);
      expect([200, 503]).toContain(await sign(randaoReveal()));
      // Without an answer of its tables the signer stops signing; what is slow is fresh enough.
      if (fault !== 'is slow') await expect.poll(() => sign(randaoReveal()), POLL).toBe(503);

      proxy.set(undefined);
      await expect.poll(() => sign(randaoReveal()), POLL).toBe(200);
    },
  );
});

describe('a trace collector that', () => {
  it.each(someOf(FAULTS, 1))('%s holds nothing up: neither signatures nor the end', async (fault) => {
    const proxy = await faultsFor(1); // of nobody: what it lets through is refused behind it
    proxy.set(fault);
    const opentelemetry = { enabled: true, endpoint: `http://127.0.0.1:${proxy.port}` };
    const deployment = deploy(1);
    const signer = await start(deployment, { config: { opentelemetry }, env: {} });
    for (const target of [2, 3, 4]) expect(await verdictOn(signer, keyOf(deployment), vote(target, 1))).toBe(200);
    expect(await signer.stop()).toBe(0);
  });
});

describe('a signer', () => {
  it('without descriptors: open connections sign, new ones come through when there are some again', async () => {
    const deployment = deploy(1);
    const key = keyOf(deployment);
    // Root alone looks at the descriptors of a process that cannot be dumped.
    const signer = await start(deployment, { config: { server: { mlock: 'off' } }, env: {} });
    const open = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await statusOver(open, signer, key, vote(2, 1))).toBe(200);
    const limit = (descriptors: string) =>
      execFileSync('prlimit', ['--pid', String(signer.pid), `--nofile=${descriptors}`]);
    const [soft, hard] = execFileSync('prlimit', [
      '--pid',
      String(signer.pid),
      '--nofile',
      '-o',
      'SOFT,HARD',
      '--noheadings',
    ])
      .toString()
      .trim()
      .split(/\s+/);
    limit(`${readdirSync(`/proc/${signer.pid}/fd`).length}:${hard}`);
    expect([200, 503]).toContain(await statusOver(open, signer, key, vote(3, 1)));
    const refused = await Promise.all(
      [4, 5, 6, 7].map((target) => statusOf(signer, key, vote(target, 1)).catch(() => 0)),
    );
    for (const one of refused) expect([0, 200, 412, 503]).toContain(one);
    limit(`${soft}:${hard}`);
    await expect.poll(() => statusOf(signer, key, randaoReveal()).catch(() => 0), POLL).toBe(200);
    await signsAgain(signer, key, 20);
    expect(await verdictOn(signer, key, vote(2, 2))).toBe(412);
    open.destroy();
  });

  it('at a limit of memory signs or ends, and the next one refuses the rivals of what it released', async () => {
    const deployment = deploy(1);
    deployment.config['anti_slashing'] = {
      jump_after_unclean_end: false,
      path: join(deployment.folder, 'slashing_protection.sqlite'),
    };
    const key = keyOf(deployment);
    const signer = await start(deployment, { config: {}, env: {} });
    execFileSync('prlimit', ['--pid', String(signer.pid), '--data=1048576']);
    const signed: number[] = [];
    const filler = 'x'.repeat(200_000);
    for (let target = 2; target < 40; target++) {
      const status = await signCall(signer.url, key, { ...vote(target, 1), filler })
        .then((answer) => answer.status)
        .catch(() => 0);
      if (status === 200) signed.push(target);
    }
    await signer.kill();
    const next = await start(deployment, { config: {}, env: {} });
    for (const target of signed) expect(await verdictOn(next, key, vote(target, 2))).toBe(412);
    await signsAgain(next, key, 50);
  });

  it.each(someOf([-3_600_000, 3_600_000], 1))(
    'whose clock jumps by %i ms signs nothing twice',
    async (milliseconds) => {
      const deployment = deploy(1);
      const file = join(deployment.folder, 'clock');
      writeFileSync(file, '0');
      const key = keyOf(deployment);
      const env = { NODE_OPTIONS: `--import=${CLOCK}`, FAULTY_CLOCK_FILE: file };
      const signer = await start(deployment, { config: {}, env });
      expect(await verdictOn(signer, key, vote(2, 1))).toBe(200);
      writeFileSync(file, String(milliseconds));
      expect(await verdictOn(signer, key, vote(2, 2))).toBe(412);
      expect(await verdictOn(signer, key, vote(3, 1))).toBe(200);
    },
  );
});
