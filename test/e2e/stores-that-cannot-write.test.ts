// A store that can be read and not written (a disk without room, a table whose writes are refused): once a commit has
// failed the signer is down until one succeeds, also when no client asks for anything meanwhile.

import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DynamoDBServer, startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { deploy } from '../support/deployment.ts';
import { FAULTS, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { lacking } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { attestation, call, rootOf, signCall } from '../support/requests.ts';

const STORES = ['sqlite', 'postgres', 'dynamodb'] as const;
const TABLE = 'written_by_nobody';
const READS = new Set(['GetItem', 'BatchGetItem', 'TransactGetItems', 'Query', 'Scan', 'DescribeTable']);
const POLL = { timeout: LONGEST_WAIT_MS, interval: 200 };

let postgres: PostgresServer;
let dynamodb: DynamoDBServer;
let proxy: FaultProxy;
beforeAll(async () => {
  [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
  await dynamodb.createTable(tableDefinition(TABLE));
  proxy = await startFaultProxy(dynamodb.endpoint);
});
afterAll(() => Promise.all([postgres.close(), proxy.close(), dynamodb.close()]));

interface Broken {
  readonly config: Record<string, unknown>;
  readonly env: Record<string, string>;
  breaks(signer: RunningSigner): Promise<unknown>;
  heals(signer: RunningSigner): Promise<unknown>;
}

const NO_ROOM = `
  CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$`;

async function brokenStore(store: (typeof STORES)[number]): Promise<Broken> {
  if (store === 'sqlite') {
    // No file of the process may grow: to SQLite this is a disk without room.
    const limit = async (pid: number, bytes: string) =>
      execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
    return { config: {}, env: {}, breaks: ({ pid }) => limit(pid, '0'), heals: ({ pid }) => limit(pid, 'unlimited') };
  }
  if (store === 'dynamodb') {
    const env = {
      AWS_REGION: 'eu-central-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    };
    return {
      config: { anti_slashing: { backend: store, table: TABLE } },
      env,
      breaks: async () => proxy.setRule(({ operation }) => (READS.has(operation) ? undefined : FAULTS.accessDenied)),
      heals: async () => proxy.setRule(undefined),
    };
  }
  const database = await postgres.createDatabase();
  return {
    config: { anti_slashing: { backend: store } },
    env: { SVC_ANTI_SLASHING__URL: postgres.url(database) },
    async breaks() {
      await postgres.query(database, NO_ROOM);
      const trigger = 'CREATE TRIGGER full_disk BEFORE INSERT ON strongroom.attestations EXECUTE FUNCTION no_room()';
      await postgres.query(database, trigger);
    },
    heals: () => postgres.query(database, 'DROP TRIGGER full_disk ON strongroom.attestations'),
  };
}

describe.skipIf(lacking('Linux', 'prlimit'))('a store that can be read alone', () => {
  it.each(STORES)('%s: DOWN until a commit succeeds', async (store) => {
    const { config, env, breaks, heals } = await brokenStore(store);
    const deployment = deploy(2, { server: { health_check: { poll_interval_seconds: 1 } } });
    const [key = '', other = ''] = deployment.keys.map(({ publicKey }) => publicKey);
    const signer = await deployment.start({ config: { ...deployment.config, ...config }, env });
    const vote = async (publicKey: string, target: number, head = 1) => {
      const body = attestation({ source: target - 1, target, head: rootOf(head) });
      const { status, json } = await signCall(signer.url, publicKey, body);
      return json['reason'] ?? status;
    };
    const polls = async () => {
      const { text } = await call(signer.metricsUrl, { token: null });
      const counts = text.matchAll(/^svc_slashing_batch_duration_seconds_count\{outcome="failed"\} (\d+)$/gm);
      return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const health = async () => {
      const { status, json } = await call(`${signer.url}/healthcheck`, { token: null });
      const [check] = (json['checks'] as Record<string, unknown>[]).filter(({ id }) => id === 'anti_slashing');
      return [status, check?.['status']];
    };
    expect(await vote(key, 20)).toBe(200);
    expect(await vote(other, 20)).toBe(200);
    await breaks(signer);
    expect(await vote(key, 21)).toBe('slashing_unavailable');
    expect(await health()).toEqual([503, 'DOWN']);
    // A repeat needs no commit, and proves none. SQLite does not even open then.
    expect(await vote(other, 20)).toBe(store === 'sqlite' ? 'slashing_unavailable' : 200);
    expect(await health()).toEqual([503, 'DOWN']);
    const before = await polls();
    await expect.poll(polls, POLL).toBeGreaterThan(before + 1);
    expect(await health()).toEqual([503, 'DOWN']);
    await heals(signer);
    await expect.poll(health, POLL).toEqual([200, 'UP']);
    // What the poll has recorded was asked for, and stands for nothing else.
    expect(await vote(key, 21, 2)).toBe('double_vote');
    expect(await vote(key, 21)).toBe(200);
    expect(await vote(key, 22)).toBe(200);
    await signer.stop();
  });

  it('sqlite: the poll finds it before a client does', async () => {
    const { breaks, heals } = await brokenStore('sqlite');
    const deployment = deploy(1, { server: { health_check: { poll_interval_seconds: 1 } } });
    const signer = await deployment.start();
    const health = async () => (await call(`${signer.url}/healthcheck`, { token: null })).status;
    await expect.poll(health, POLL).toBe(200);
    await breaks(signer);
    await expect.poll(health, POLL).toBe(503);
    await heals(signer);
    await expect.poll(health, POLL).toBe(200);
    await signer.stop();
  });
});
