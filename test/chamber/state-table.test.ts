// The state table through a proxy that loses answers, breaks connections and throttles: nothing is lost, nothing is
// done twice, and no fault is ever taken for an answer about the rows.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import type { AwsClientOptions } from '../../signer/aws/client.ts';
import { encodeAuthHead } from '../../signer/chamber/state-rows.ts';
import type { StateTable } from '../../signer/chamber/state-table.ts';
import {
  FAULTS,
  type Fault,
  type FaultProxy,
  faultTimes,
  randomFaults,
  startFaultProxy,
} from '../support/fault-proxy.ts';
import { GIVES_UP, PATIENT } from '../support/patience.ts';
import { bootReplica, fingerprint, openTable, said } from './replicas.ts';

let world: CustodyWorld;
let proxy: FaultProxy;
let table: StateTable & Disposable;

beforeAll(async () => {
  world = await startCustody();
  proxy = await startFaultProxy(world.dynamodb.endpoint);
});
afterAll(async () => {
  await proxy.close();
  await world.close();
});
beforeEach(async () => {
  proxy.setRule(undefined);
  table?.[Symbol.dispose]();
  table = await openNew(PATIENT);
});

async function openNew(client: AwsClientOptions): Promise<StateTable & Disposable> {
  return openTable(world, await world.createTable(), { endpoint: proxy.endpoint, client });
}

/** Only what never answers is given up. */
function patienceWith(fault: Fault): AwsClientOptions {
  return fault.kind === 'hang' ? GIVES_UP : PATIENT;
}

const LOST = [
  ['an answer that is lost on the way', FAULTS.dropAnswer],
  ['a connection that breaks after the write', FAULTS.resetAfter],
  ['an error of the service after the write', FAULTS.internalErrorAfterApplying],
  ['a connection that breaks before the write', FAULTS.resetBefore],
  ['a conflict with another transaction', FAULTS.transactionConflict],
  ['throttling', FAULTS.throttled],
  ['an answer that never comes', FAULTS.hang],
] as const;

const AUTH_PKS = ['POLICY#a', 'POLICY#b', 'POLICY#c', 'POLICY#late'];

function head(revision: number, byte = revision) {
  return { revision, manifest: `{"at":${revision}}`, mac: Buffer.alloc(32, byte) };
}

function policy(name: string, revision: number) {
  return { put: { pk: `POLICY#${name}`, revision, content: '{}', mac: Buffer.alloc(32, revision) } };
}

describe('commit', () => {
  it('writes rows and head together, on the revision it expects and no other', async () => {
    expect(await table.commit(undefined, [policy('a', 1), policy('b', 1)], head(1))).toBe('committed');
    expect(await table.commit(1, [{ delete: 'POLICY#a' }, policy('c', 2)], head(2))).toBe('committed');
    expect(await table.commit(1, [policy('late', 2)], head(2, 9))).toBe('conflict');
    expect(await table.commit(undefined, [policy('late', 1)], head(1, 9))).toBe('conflict');
    expect((await table.readRows(AUTH_PKS)).map(({ pk }) => pk).sort()).toEqual(['POLICY#b', 'POLICY#c']);
    expect(await table.readHead()).toEqual({ ...head(2), mac: new Uint8Array(head(2).mac) });
  });

  it.each(LOST)('%s: committed once, and the next one follows it', async (_what, fault) => {
    using table = await openNew(patienceWith(fault));
    proxy.setRule(faultTimes(1, fault, 'TransactWriteItems'));
    expect(await table.commit(undefined, [policy('a', 1)], head(1))).toBe('committed');
    expect(proxy.faults).toBeGreaterThan(0);
    expect(await table.commit(1, [policy('b', 2)], head(2))).toBe('committed');
    expect(await table.readRows(AUTH_PKS)).toHaveLength(2);
  });

  it('a service that stays away is state_stale, never a conflict', async () => {
    proxy.setRule(() => FAULTS.resetBefore);
    await expect(table.commit(undefined, [policy('a', 1)], head(1))).rejects.toMatchObject({ reason: 'state_stale' });
    proxy.setRule(undefined);
    expect(await table.readHead()).toBeUndefined();
  });
});

it('a commit that is in the table already is committed, not a conflict', async () => {
  const repeat = () => table.commit(undefined, [policy('a', 1)], head(1));
  expect(await repeat()).toBe('committed');
  expect(await repeat()).toBe('committed');
  expect(await table.commit(undefined, [policy('a', 1)], head(1, 9))).toBe('conflict');
});

it.each(['MASTER_KEY', 'ROOT_TOKEN_BOOTSTRAP', 'AUTH_REVISION', 'SEAL_OVERRIDE'])(
  'a table that has %s is not initialised',
  async (pk) => {
    await world.putRow(table.tableName, { pk: { S: pk } });
    const rootToken = { value: 'age', createdAt: '2026-01-02T03:04:05Z', evidence: undefined };
    const auth = { changes: [policy('a', 1)], head: head(1) };
    expect(await table.initialise({ generation: 1, record: '{}', evidence: undefined }, rootToken, auth)).toBe(
      'condition_failed',
    );
    expect(await table.readRows(AUTH_PKS)).toEqual([]);
    expect(await world.row(table.tableName, pk)).toEqual({ pk: { S: pk } });
  },
);

describe('the latch', () => {
  it('the first one stays, and every later call is told of it', async () => {
    const first = { reason: 'drill', accessor: 'acc_1', sealedAt: '2026-01-02T03:04:05.000Z' };
    expect(await table.writeLatch(first)).toEqual(first);
    expect(await table.writeLatch({ ...first, reason: 'another' })).toEqual(first);
    expect(await table.readLatch()).toEqual(first);
  });

  it.each(LOST)('%s: the latch is written all the same', async (_what, fault) => {
    using table = await openNew(patienceWith(fault));
    proxy.setRule(faultTimes(1, fault, 'TransactWriteItems'));
    await table.writeLatch({ reason: null, accessor: 'acc_1', sealedAt: null });
    expect(await table.readLatch()).toEqual({ reason: null, accessor: 'acc_1', sealedAt: null });
  });

  it('a row made by hand seals, whatever is in it', async () => {
    await world.putRow(table.tableName, { pk: { S: 'SEAL_OVERRIDE' }, reason: { N: '1' }, sealed_at: { S: 'soon' } });
    expect((await table.watch()).latch).toEqual({ reason: null, accessor: null, sealedAt: null });
  });

  it('seals also beside rows that cannot be read', async () => {
    await world.putRow(table.tableName, { pk: { S: 'SEAL_OVERRIDE' } });
    await world.putRow(table.tableName, { pk: { S: 'AUTH_REVISION' }, revision: { S: 'seven' } });
    await world.putRow(table.tableName, { pk: { S: 'MASTER_KEY' }, generation: { N: '1.5' } });
    expect((await table.watch()).latch).toEqual({ reason: null, accessor: null, sealedAt: null });
  });
});

describe('reads', () => {
  it('rows that the service leaves unprocessed are asked for again, and never count as absent', async () => {
    await table.writeLatch({ reason: null, accessor: null, sealedAt: null });
    let rounds = 0;
    proxy.setRule(({ operation, body }) => {
      if (operation !== 'BatchGetItem' || rounds++ > 0) return undefined;
      return {
        kind: 'answer',
        body: JSON.stringify({
          Responses: {},
          UnprocessedKeys: (JSON.parse(body) as { RequestItems: object }).RequestItems,
        }),
      };
    });
    expect((await table.watch()).latch).toBeDefined();
    expect(rounds).toBe(2);
  });

  it('what is watched tells two heads of one revision apart', async () => {
    await table.commit(undefined, [policy('a', 1)], head(1));
    expect(await table.watch()).toMatchObject({ authHead: { revision: 1, mac: new Uint8Array(head(1).mac) } });
    await world.putRow(table.tableName, encodeAuthHead(head(1, 9)));
    expect(await table.watch()).toMatchObject({ authHead: { revision: 1, mac: new Uint8Array(head(1, 9).mac) } });
  });

  it('auth rows come complete, however large they are, and only those that are asked for', async () => {
    const pks = Array.from({ length: 60 }, (_, index) => `POLICY#${index}`);
    const item = { revision: { N: '1' }, content: { S: 'x'.repeat(300_000) }, mac: { B: Buffer.alloc(32) } };
    for (const pk of [...pks, 'POLICY#other']) await world.putRow(table.tableName, { pk: { S: pk }, ...item });
    const found = await table.readRows([...pks, 'POLICY#absent']);
    expect(found.map(({ pk }) => pk).toSorted()).toEqual(pks.toSorted());
  });

  it('an auth row without its members is handed on for its HMAC to refuse', async () => {
    await world.putRow(table.tableName, { pk: { S: 'TOKEN#acc_1' } });
    expect(await table.readRows(['TOKEN#acc_1'])).toEqual([
      { pk: 'TOKEN#acc_1', revision: -1, content: '', mac: new Uint8Array() },
    ]);
  });

  it('an AUTH_REVISION row without its members is refused with its name', async () => {
    await world.putRow(table.tableName, { pk: { S: 'AUTH_REVISION' } });
    const problem = expect.stringContaining('AUTH_REVISION');
    await expect(table.readHead()).rejects.toMatchObject({ reason: 'state_stale', detail: { problem } });
    await expect(table.watch()).rejects.toMatchObject({ reason: 'state_stale', detail: { problem } });
  });
});

describe('replicas that boot while the table is disturbed', () => {
  it.each(LOST)('%s in the initialising transaction: initialised once, and by this replica', async (_what, fault) => {
    proxy.setRule(faultTimes(1, fault, 'TransactWriteItems'));
    const ceremony = world.createCeremony();
    const options = { table: table.tableName, ceremony, dynamodb: proxy.endpoint, client: patienceWith(fault) };
    const first = await bootReplica(world, options);
    expect(said(first, 'initialised')).toBe(true);
    proxy.setRule(undefined);
    expect(fingerprint(await bootReplica(world, options))).toBe(fingerprint(first));
  });

  it.each(LOST)('%s in a rotation: rotated once, the same master key', async (_what, fault) => {
    const old = world.createCeremony();
    const options = { table: table.tableName, dynamodb: proxy.endpoint, client: patienceWith(fault) };
    const first = await bootReplica(world, { ...options, ceremony: old });
    const ceremony = { ...world.createCeremony(), generation: 2, retired_kms_keys: old.kms_keys };
    proxy.setRule(faultTimes(1, fault, 'TransactWriteItems'));
    const rotated = await bootReplica(world, { ...options, ceremony });
    expect(said(rotated, 'rotated')).toBe(true);
    expect(fingerprint(rotated)).toBe(fingerprint(first));
    expect(await world.row(table.tableName, 'MASTER_KEY')).toMatchObject({ generation: { N: '2' } });
  });

  it('an answer that is lost until the call gives up: the next try finds its own write, and takes it for that', async () => {
    const patience = { ...PATIENT, maxAttempts: 1 };
    const options = { table: table.tableName, dynamodb: proxy.endpoint, client: patience };
    const loseOneCall = () => proxy.setRule(faultTimes(3, FAULTS.resetAfter, 'TransactWriteItems'));
    const old = world.createCeremony();

    loseOneCall();
    const first = await bootReplica(world, { ...options, ceremony: old });
    expect(said(first, 'initialised')).toBe(true);

    const ceremony = { ...world.createCeremony(), generation: 2, retired_kms_keys: old.kms_keys };
    loseOneCall();
    expect(said(await bootReplica(world, { ...options, ceremony }), 'rotated')).toBe(true);

    await world.deleteRow(table.tableName, 'ROOT_TOKEN_BOOTSTRAP');
    loseOneCall();
    expect(said(await bootReplica(world, { ...options, ceremony }), 'a new root token is written')).toBe(true);
    expect(await world.row(table.tableName, 'AUTH_REVISION')).toMatchObject({ revision: { N: '2' } });
  });

  it('30 % of all requests fail: one master key, one root token, and those that give up say startup failure 8', async () => {
    const faults = LOST.map(([, fault]) => fault).filter((fault) => fault.kind !== 'hang');
    let unsealed = 0;
    for (let seed = 1; seed <= 6; seed++) {
      const name = await world.createTable();
      const ceremony = world.createCeremony();
      proxy.setRule(randomFaults(seed, 0.3, faults));
      const boots = Array.from({ length: 8 }, () =>
        bootReplica(world, { table: name, ceremony, dynamodb: proxy.endpoint, client: PATIENT }),
      );
      const results = await Promise.allSettled(boots);
      const replicas = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
      expect(failures.filter((failure) => failure.startupFailure !== 8)).toEqual([]);
      unsealed += replicas.length;
      expect(new Set(replicas.map(fingerprint)).size).toBe(1);
      expect(replicas.filter((replica) => said(replica, 'initialised')).length).toBeLessThanOrEqual(1);
      proxy.setRule(undefined);
      const later = await bootReplica(world, { table: name, ceremony });
      expect(replicas.map(fingerprint)).toContain(fingerprint(later));
      expect(await world.row(name, 'AUTH_REVISION')).toMatchObject({ revision: { N: '1' } });
      expect(await world.rootToken(name)).toMatch(/^sr_mgmt_/);
    }
    expect(unsealed).toBeGreaterThan(40); // of 48: the patience of a start makes giving up rare
  });
});
