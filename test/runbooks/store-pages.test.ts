// docs/runbooks/slashing-database.md and what docs/runbooks/store-unavailable.md says of its store, from alert to end:
// a failover that lost commits under a wrong clock, a server that is gone, a lock that somebody forgot, a store that is
// gone, a record that somebody wrote to. What was signed before is refused afterwards, what is new is signed.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { interchangeOf } from '../support/interchange.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import { nextEpoch, presentEpoch, QUICK_CHAIN, withTolerance } from '../support/quick-chain.ts';
import { tellsOneStory } from '../support/skip.ts';
import { after } from './follow.ts';
import { type Host, sshProgram } from './hosts.ts';
import type { Block } from './page.ts';
import { Refused } from './programs.ts';
import { psqlProgram } from './psql.ts';
import { rehearseSection } from './rehearse.ts';
import { type ServiceWorld, startServiceRunbooks } from './service-world.ts';

const PAGE = 'docs/runbooks/slashing-database.md';
const CLOCK_PAGE = 'docs/runbooks/certificates-and-clocks.md';
const STORE_PAGE = 'docs/runbooks/store-unavailable.md';
const [KEY, LEFT, OTHER] = [0, 1, 2];

let world: ServiceWorld;
let primary: PostgresServer;
let proxy: PostgresProxy;
const servers = new Map<string, PostgresServer>();
const keyAt = (index: number): string => world.keys[index] ?? '';
const slashing = (...args: string[]) =>
  runStrongroom(['slashing', ...args, '-c', join(world.etc, 'strongroom.yaml')], { env: world.env });

interface Around {
  readonly page?: string;
  readonly elsewhere?: number;
  readonly around?: (block: Block) => Promise<void>;
}

function machineOf(name: string): Host {
  return {
    folder: '',
    async systemctl(verb, service) {
      if (service !== 'postgresql') throw new Refused(`Unit ${service}.service not found.`, 5);
      await (verb === 'stop' ? servers.get(name)?.stop('fast') : servers.get(name)?.start());
    },
  };
}

tellsOneStory();

beforeAll(async () => {
  primary = await startPostgres();
  const machines = ['db-1.example', 'db-2.example'].map((name): [string, Host] => [name, machineOf(name)]);
  world = await startServiceRunbooks({
    programs: { psql: psqlProgram(servers), ssh: sshProgram(new Map(machines)) },
    sections: QUICK_CHAIN,
  });
});
afterAll(async () => {
  await world?.close();
  await proxy?.close();
  for (const server of [...servers.values(), primary]) await server?.close();
});

const follow = (section: string, { page = PAGE, elsewhere = 0, around }: Around = {}) => {
  const values = {
    ...world.values,
    RETIRED: keyAt(LEFT),
    INTERCHANGE: 'newest.json',
    DATABASE: 'postgres://dba@db-2.example/test_1',
    OLD_DATABASE: 'postgres://dba@db-1.example/test_1',
    ...{ OLD_SERVER: 'db-1.example', DATABASE_SERVER: 'db-2.example', CUSTODY_KEYS: '' },
    ...{ CERTIFICATE: '', CERTIFICATE_KEY: '', NEW_CERTIFICATE: '', NEW_KEY: '' },
  };
  return rehearseSection(page, section, { ...world, values }, { before: after(world, around), elsewhere });
};

it('#jumped: a failover lost a vote and a retirement; neither can be undone by that', async () => {
  const now = presentEpoch();
  const database = await primary.createDatabase();
  const standby = await primary.startStandby();
  servers.set('db-2.example', standby).set('db-1.example', primary);
  proxy = await startPostgresProxy(primary.port);
  const url = primary.url(database).replace(`:${primary.port}/`, `:${proxy.port}/`);
  world.configure((all) => Object.assign(all, { anti_slashing: withTolerance({ backend: 'postgres', url }) }));
  await world.unit.start();
  expect(await world.vote(keyAt(KEY), now - 5)).toBe('signed');
  await standby.catchUp();
  await standby.stopReceiving();
  expect(await world.vote(keyAt(KEY), now - 2)).toBe('signed');
  expect((await slashing('retire', keyAt(LEFT))).code).toBe(0);
  await standby.promote();
  // To a clock that is two days behind, the present lies ahead.
  world.setClock(-172_800_000);
  proxy.switchTo(standby.port, 'cut');
  for (const head of [9, 1, 9])
    expect(await world.vote(keyAt(KEY), now - 2, { head })).toMatch(/^(slashing|clock|ahead)_/);
  await follow('unconfirmed', { page: CLOCK_PAGE });
  world.setClock(-172_800_000);
  const found = await follow('clock', { page: CLOCK_PAGE });
  expect(found.map(({ output }) => output).join()).toContain('172800.000000000 seconds slow');
  // The first request on a connection that broke fails.
  await expect.poll(() => world.vote(keyAt(KEY), now - 2, { head: 9 })).toMatch(/_below_low_water_mark$/);
  await expect.poll(metricsNow).toContain('svc_slashing_jumps_total{cause="other_server"} 1');

  await follow('jumped');
  await expect(primary.query(database, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  expect(await world.vote(keyAt(KEY), now - 2, { head: 9 })).toMatch(/_below_low_water_mark$/);
  const later = await nextEpoch();
  expect(await world.vote(keyAt(LEFT), later)).toBe('key_retired');
  expect(await world.vote(keyAt(KEY), later)).toBe('signed');
});

it('docs/runbooks/certificates-and-clocks.md#floor: somebody stated a present that is still to come', async () => {
  const now = presentEpoch();
  world.setClock(7_200_000);
  const future = now + 2000; // 6,400 seconds
  expect((await slashing('jump', '--slot', String(future * 32), '--epoch', String(future))).code).toBe(0);
  world.setClock(0, 'synchronised');
  await world.unit.stop();
  await world.unit.start();
  expect(await world.vote(keyAt(LEFT + 1), now)).toBe('below_floor');
  await follow('floor', { page: CLOCK_PAGE });
  expect(await world.vote(keyAt(LEFT + 1), now)).toMatch(/_below_low_water_mark$/);
  expect(await world.vote(keyAt(KEY), now - 2, { head: 9 })).toMatch(/_below_low_water_mark$/);
});

it('docs/runbooks/store-unavailable.md#slashing-store, #slow: the server is gone, then somebody locks; the signer goes on by itself', async () => {
  const now = await nextEpoch();
  const server = servers.get('db-2.example');
  const pid = world.unit.signer?.pid;
  await server?.stop('immediate');
  await expect.poll(() => world.vote(keyAt(KEY), now)).toBe('slashing_unavailable');
  await expect.poll(() => healthOf(world.address)).toBe(503);
  await expect.poll(metricsNow).toMatch(/^svc_slashing_backend_up 0$/m);
  await follow('slashing-store', { page: STORE_PAGE });
  expect(await world.vote(keyAt(KEY), now)).toBe('signed');

  const somebody = new Client({ connectionString: server?.url('test_1') });
  somebody.on('error', () => undefined); // it is ended, which is what the page is about
  await somebody.connect();
  await somebody.query('BEGIN; LOCK TABLE strongroom.validators');
  const second = await nextEpoch(now);
  const waiting = world.vote(keyAt(KEY), second);
  await follow('slow', {
    page: STORE_PAGE,
    around: async ({ commands }) => {
      if (commands.includes('pg_terminate_backend')) await expect.poll(isForgotten).toBe(true);
      if (commands.includes("wait_event_type = 'Lock'")) await expect.poll(isLockWaitedFor).toBe(false);
    },
  });
  await waiting;
  const third = await nextEpoch(second);
  expect(await world.vote(keyAt(KEY), third)).toBe('signed');
  expect(await world.vote(keyAt(KEY), third, { head: 9 })).toBe('double_vote');
  expect(world.unit.signer?.pid).toBe(pid);
});

/** Those that were read a moment ago are shown again: what has just changed comes a little later. */
async function metricsNow(): Promise<string> {
  return (await fetch(`http://${world.address}:3000/metrics`)).text();
}

async function healthOf(address: string): Promise<number> {
  return (await fetch(`http://${address}:9000/healthcheck`)).status;
}

async function isFound(query: string): Promise<boolean> {
  return ((await servers.get('db-2.example')?.query('test_1', query)) ?? []).length > 0;
}

const isForgotten = () =>
  isFound(
    "SELECT FROM pg_stat_activity WHERE state_change < now() - interval '10 s' AND state = 'idle in transaction'",
  );
/** The one that was told to end, and the one that waited for it, go on when the machine schedules them. */
const isLockWaitedFor = () => isFound("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'");

it('#lost: the store is gone, and a file of last month is all there is', async () => {
  const now = presentEpoch();
  await world.unit.stop();
  world.configure((all) => {
    const path = join(world.store, 'slashing_protection.sqlite');
    Object.assign(all, { anti_slashing: withTolerance({ backend: 'sqlite', path }) });
  });
  await world.unit.start();
  expect(await world.vote(keyAt(KEY), now - 1)).toBe('signed');
  await world.unit.kill();
  rmSync(world.store, { recursive: true });
  mkdirSync(world.store);
  writeFileSync(join(world.etc, 'newest.json'), JSON.stringify(interchangeOf([keyAt(KEY), keyAt(LEFT)])));

  await follow('lost');
  expect(await world.vote(keyAt(KEY), now - 1, { head: 9 })).toMatch(/_below_low_water_mark$/);
  const later = await nextEpoch();
  expect(await world.vote(keyAt(LEFT), later)).toBe('key_retired');
  expect(await world.vote(keyAt(KEY), later)).toBe('signed');
});

it('#damaged: somebody wrote to a record; the new store believes nothing of it', async () => {
  const now = presentEpoch();
  await world.unit.stop();
  rmSync(`${world.store}.lost`, { recursive: true });
  const file = new DatabaseSync(join(world.store, 'slashing_protection.sqlite'));
  const { changes } = file
    .prepare('UPDATE validators SET high_target_epoch = 5 WHERE public_key = ?')
    .run(Buffer.from(keyAt(KEY).slice(2), 'hex'));
  file.close();
  expect(changes).toBe(1);
  await world.unit.start();
  const voted = await nextEpoch(now);
  expect(await world.vote(keyAt(KEY), voted)).toBe('slashing_integrity');
  expect(await world.vote(keyAt(OTHER), voted)).toBe('signed');

  const found = await follow('damaged', {
    elsewhere: 1,
    // “Build a new store, as for one that is lost”
    around: async ({ commands }) => void (commands.includes('jq -s length') && (await follow('lost'))),
  });
  expect(found.map(({ output }) => output).join()).toContain(`1 ${keyAt(KEY)}`);
  const later = await nextEpoch(voted);
  for (const key of [keyAt(KEY), keyAt(OTHER)]) {
    expect(await world.vote(key, now, { head: 9 })).toMatch(/_below_low_water_mark$/);
    expect(await world.vote(key, later)).toBe('signed');
  }
  expect(await world.vote(keyAt(LEFT), later)).toBe('key_retired');
});
