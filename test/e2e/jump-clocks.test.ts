// Which clock a jump goes by, and what one key's future does to the others, over real processes: after a kill a signer
// raises its store only by a clock that something confirms; a floor of the future is told as such, and is lowered by
// hand; a vote of the far future by one key, signed or imported, stops no other key, however often the signer is killed
// or its database fails over. The tests run at once, because nearly all the time each waits for what a jump covers.
// TEST keys.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { CHAIN, presentEpoch, vote, WAIT } from '../support/asked-fleet.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { call, rootOf, signCall, testKey } from '../support/requests.ts';

const FAULTY_CLOCK = join(import.meta.dirname, '../support/faulty-clock.ts');
const STRICT = { SVC_ANTI_SLASHING__UNSAFE_UNCONFIRMED_CLOCK: 'false' };
const HOURS_MS = 2 * 3_600_000;
const EPOCH_MS = 8 * CHAIN.custom_network.slot_duration_ms;
const OTHER = 1;

let postgres: PostgresServer;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-clocks-'));
  postgres = await startPostgres({ settings: { wal_level: 'replica', synchronous_standby_names: '' } });
});
afterAll(async () => {
  await postgres?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A clock that may be set, and what the kernel says of it. */
function clock(name: string) {
  const file = join(folder, name);
  const set = (offMs: number, kernel: 'synchronised' | 'unsynchronised'): void =>
    writeFileSync(file, `${offMs} 0 ${kernel}`);
  return { set, env: { ...STRICT, NODE_OPTIONS: `--import=${FAULTY_CLOCK}`, FAULTY_CLOCK_FILE: file } };
}

const ask = async (signer: RunningSigner, epoch: number, { key = 0, head = 1 } = {}) => {
  const { status, json } = await signCall(signer.url, testKey(key).publicKey, vote(epoch, rootOf(head)));
  return status === 200 ? 'signed' : String(json['reason']);
};
const signsThePresent = (signer: RunningSigner, key = 0) =>
  vi.waitFor(async () => expect(await ask(signer, presentEpoch(), { key })).toBe('signed'), WAIT);
const clockCheck = async (signer: RunningSigner) => {
  const health = (await call(`${signer.url}/healthcheck`)).json as {
    checks: { id: string; status: string; detail?: string }[];
  };
  return health.checks.find(({ id }) => id === 'clock');
};
const slashing = (deployment: Deployment, env: Readonly<Record<string, string>>, ...words: readonly string[]) =>
  runStrongroom(['slashing', ...words, '-c', join(deployment.folder, 'strongroom.yaml')], { env });

it.concurrent('after a kill, with a kernel that nothing sets: 503 clock_unconfirmed, until it is set', async () => {
  const { set, env } = clock('unconfirmed');
  set(0, 'unsynchronised');
  const deployment = deploy(1, CHAIN);
  const before = await deployment.start({ env });
  await signsThePresent(before); // no doubt: no clock is asked
  await before.kill();
  const signer = await deployment.start({ env });
  expect(await ask(signer, presentEpoch())).toBe('clock_unconfirmed');
  expect(await clockCheck(signer)).toMatchObject({
    status: 'DOWN',
    detail: expect.stringMatching(/^nothing confirms the clock of this signer/),
  });
  const refused = await slashing(deployment, env, 'status');
  expect(refused.code).toBe(1); // the file is in use
  set(0, 'synchronised');
  await signsThePresent(signer);
  expect(await clockCheck(signer)).toEqual({ id: 'clock', status: 'UP' });
  expect((await call(signer.metricsUrl)).text).toMatch(/^svc_slashing_jumps_total\{cause="unclean_end"\} 1$/m);
  await signer.kill();
  // By hand, too.
  set(0, 'unsynchronised');
  expect((await slashing(deployment, env, 'jump')).stderr).toContain('nothing confirms the clock');
  const epoch = presentEpoch();
  const stated = ['jump', '--slot', String(epoch * 8), '--epoch', String(epoch)];
  expect((await slashing(deployment, env, ...stated)).code).toBe(0);
  set(0, 'synchronised'); // a start that is late has another doubt
  const next = await deployment.start({ env });
  await signsThePresent(next);
  await next.stop();
  rmSync(deployment.folder, { recursive: true });
});

it.concurrent('records that were found to be lost are known to the next process until a jump was made', async () => {
  const { set, env } = clock('lost');
  set(0, 'unsynchronised');
  const name = await postgres.createDatabase();
  const tables = ['validators', 'attestations'];
  const each = (sql: (table: string) => string) => postgres.query(name, tables.map(sql).join(';\n'));
  const deployment = deploy(1, { ...CHAIN, anti_slashing: { backend: 'postgres', url: postgres.url(name) } });
  const signer = await deployment.start({ env });
  await signsThePresent(signer);
  await postgres.query(name, 'CREATE SCHEMA saved');
  await each((table) => `CREATE TABLE saved.${table} AS SELECT * FROM strongroom.${table}`);
  const saved = presentEpoch();
  await vi.waitFor(() => expect(presentEpoch()).toBeGreaterThan(saved), WAIT);
  const lost = presentEpoch();
  expect(await ask(signer, lost)).toBe('signed');
  await postgres.query(name, 'DELETE FROM strongroom.attestations; DELETE FROM strongroom.validators');
  await each((table) => `INSERT INTO strongroom.${table} OVERRIDING SYSTEM VALUE SELECT * FROM saved.${table}`);
  await vi.waitFor(async () => expect(await ask(signer, presentEpoch())).toBe('clock_unconfirmed'), WAIT);
  await signer.stop();
  expect((await slashing(deployment, env, 'export')).stderr).toContain('nothing is exported');
  const next = await deployment.start({ env });
  expect(await ask(next, lost, { head: 2 })).toBe('clock_unconfirmed');
  set(0, 'synchronised');
  await signsThePresent(next);
  expect(await ask(next, lost, { head: 2 })).toMatch(/_low_water_mark/);
  expect((await call(next.metricsUrl)).text).toMatch(/^svc_slashing_jumps_total\{cause="lost_records"\} 1$/m);
  await next.stop();
  const last = await deployment.start({ env });
  expect((await call(last.metricsUrl)).text).not.toMatch(/^svc_slashing_jumps_total\{cause="lost_records"\} 1$/m);
  await last.stop();
  rmSync(deployment.folder, { recursive: true });
});

it.concurrent('a database that says another time contradicts: no floor of the future comes into its store', async () => {
  const { set, env } = clock('contradicted');
  const url = postgres.url(await postgres.createDatabase());
  const one = deploy(1, { ...CHAIN, anti_slashing: { backend: 'postgres', url, jump_at_boot: true } });
  set(HOURS_MS, 'synchronised');
  const ahead = await one.start({ env });
  expect(await ask(ahead, presentEpoch())).toBe('clock_unconfirmed');
  expect((await clockCheck(ahead))?.detail).toMatch(
    /^the clock of this signer is \d+ s ahead of the slashing database$/,
  );
  set(0, 'synchronised');
  await signsThePresent(ahead);
  await ahead.kill();
  rmSync(one.folder, { recursive: true });
});

it.concurrent.each(['sqlite', 'postgres'] as const)(
  '%s: a floor of the future is told with its end, and lowered when the clock is right',
  async (backend) => {
    const { set, env } = clock(`future-${backend}`);
    const deployment = deploy(2, {
      ...CHAIN,
      ...(backend === 'sqlite'
        ? {}
        : { anti_slashing: { backend, url: postgres.url(await postgres.createDatabase()) } }),
    });
    set(0, 'synchronised');
    const before = await deployment.start({ env });
    await signsThePresent(before);
    const epoch = presentEpoch();
    await before.stop();
    // A clock that was ahead, and that nothing contradicted.
    set(HOURS_MS, 'synchronised');
    const future = presentEpoch() + HOURS_MS / EPOCH_MS;
    // The server of a test is on this machine: it contradicts, and a person states the present that the clock says.
    const stated = backend === 'sqlite' ? [] : ['--slot', String(future * 8), '--epoch', String(future)];
    expect((await slashing(deployment, env, 'jump', ...stated)).code).toBe(0);
    set(0, 'synchronised');
    const signer = await deployment.start({ env });
    expect(signer.output()).toContain('the floor of the slashing store lies in the future');
    const { json, status } = await signCall(signer.url, testKey(0).publicKey, vote(presentEpoch(), rootOf(1)));
    expect(status).toBe(503);
    expect(json).toMatchObject({ reason: 'below_floor', message: expect.stringMatching(/until \d{4}-\d\d-\d\dT/) });
    expect(await clockCheck(signer)).toMatchObject({
      status: 'DOWN',
      detail: expect.stringContaining('in the future'),
    });
    const ahead = /^svc_slashing_floor_ahead_seconds (\d+)/m.exec((await call(signer.metricsUrl)).text)?.[1];
    expect(Number(ahead)).toBeGreaterThan(HOURS_MS / 1000 - 120);
    await signer.stop();
    const config = join(deployment.folder, 'strongroom.yaml');
    expect((await runStrongroom(['server', '--check', '-c', config], { env })).stderr).toContain('lies in the future');
    set(0, 'unsynchronised');
    expect((await slashing(deployment, env, 'lower-floor')).code).toBe(1);
    set(0, 'synchronised');
    expect((await slashing(deployment, env, 'lower-floor', '--dry-run')).stdout).toContain('would refuse');
    expect((await slashing(deployment, env, 'lower-floor')).stdout).toContain('refused from now on');
    expect((await slashing(deployment, env, 'lower-floor')).stderr).toContain('nothing was changed');
    const next = await deployment.start({ env });
    expect(await ask(next, epoch, { head: 2 })).toMatch(/double_vote|_low_water_mark/);
    expect(await ask(next, epoch, { key: OTHER })).toMatch(/_low_water_mark/);
    for (const key of [0, OTHER]) await signsThePresent(next, key);
    await next.stop();
    rmSync(deployment.folder, { recursive: true });
  },
);

describe.concurrent('a vote of the far future by one key', () => {
  const far = () => presentEpoch() + 1_000_000;
  /** An imported entry: a signer refuses to sign it. */
  async function plant(deployment: Deployment): Promise<void> {
    const file = join(deployment.folder, 'far.json');
    const attestation = { source_epoch: String(presentEpoch() - 1), target_epoch: String(far()) };
    const data = [{ pubkey: testKey(0).publicKey, signed_blocks: [], signed_attestations: [attestation] }];
    const metadata = {
      interchange_format_version: '5',
      genesis_validators_root: CHAIN.custom_network.genesis_validators_root,
    };
    writeFileSync(file, JSON.stringify({ metadata, data }));
    const words = ['import', file];
    const plain = await slashing(deployment, {}, ...words);
    if (plain.code !== 0) expect((await slashing(deployment, {}, ...words, '--accept-future')).code).toBe(0);
  }

  it('stops no start after a kill, however often, and no jump by hand', async () => {
    const deployment = deploy(2, CHAIN);
    const first = await deployment.start();
    await signsThePresent(first, OTHER);
    await first.stop();
    await plant(deployment);
    for (let kills = 1; kills <= 2; kills++) {
      const signer = await deployment.start();
      await signsThePresent(signer, OTHER);
      expect(await ask(signer, presentEpoch())).not.toBe('signed');
      await signer.kill();
    }
    expect((await slashing(deployment, {}, 'jump')).code).toBe(0);
    rmSync(deployment.folder, { recursive: true });
  });

  it('stops no start that jumps at boot', async () => {
    const path = join(folder, 'boot.sqlite');
    const deployment = deploy(2, { ...CHAIN, anti_slashing: { path, jump_at_boot: true } });
    writeFileSync(join(deployment.folder, 'strongroom.yaml'), JSON.stringify(deployment.config));
    await plant(deployment);
    const signer = await deployment.start();
    expect(await clockCheck(signer)).toEqual({ id: 'clock', status: 'UP' });
    await signsThePresent(signer, OTHER);
    await signer.kill();
    rmSync(deployment.folder, { recursive: true });
  });

  it('stops no failover', async () => {
    const database = await postgres.createDatabase();
    const proxy = await startPostgresProxy(postgres.port);
    const url = postgres.url(database).replace(`:${postgres.port}/`, `:${proxy.port}/`);
    const deployment = deploy(2, { ...CHAIN, anti_slashing: { backend: 'postgres', url } });
    const signer = await deployment.start();
    await signsThePresent(signer, OTHER);
    await plant(deployment);
    const standby = await postgres.startStandby();
    try {
      await standby.catchUp();
      await standby.promote();
      proxy.switchTo(standby.port, 'cut');
      await signsThePresent(signer, OTHER);
      expect((await call(signer.metricsUrl)).text).toMatch(/^svc_slashing_jumps_total\{cause="other_server"\} 1$/m);
    } finally {
      await signer.kill();
      await standby.close();
      await proxy.close();
      rmSync(deployment.folder, { recursive: true });
    }
  });
});
