// Many writers, lost answers, and readers in the middle of it: every change is made once or not at all, what is
// answered is durable, and no replica ever holds a mixture of two revisions.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Policy } from '../../../enclave/api/policy.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../../enclave/auth/stateful/policies.ts';
import { policiesOf, tokensOf } from '../../../enclave/auth/stateful/snapshot.ts';
import { MAX_TOKENS_TOGETHER } from '../../../enclave/auth/stateful/state.ts';
import { MAX_WAITING_CHANGES } from '../../../enclave/auth/stateful/stateful.ts';
import { issueToken, renewToken, revokeToken } from '../../../enclave/auth/stateful/tokens.ts';
import type { AwsClientOptions } from '../../../enclave/aws/client.ts';
import { createDynamoDBClient } from '../../../enclave/aws/dynamodb.ts';
import { type StateTable, stateTable } from '../../../enclave/chamber/state-table.ts';
import { dynamoDBClientOptions } from '../../../rehearsal/dynamodb.ts';
import { FAULTS, type FaultProxy, faultTimes, randomFaults, startFaultProxy } from '../../support/fault-proxy.ts';
import { GIVES_UP, PATIENT } from '../../support/patience.ts';
import {
  type AuthReplica,
  type AuthServer,
  type AuthTable,
  openAuthReplica,
  startAuthServer,
} from '../../support/stateful-auth.ts';

let server: AuthServer;
let proxy: FaultProxy;
let table: AuthTable;
let replica: AuthReplica;
let root: string;

beforeAll(async () => {
  server = await startAuthServer();
  proxy = await startFaultProxy(server.endpoint);
});
afterAll(async () => {
  await proxy.close();
  await server.close();
});
beforeEach(async () => {
  proxy.setRule(undefined);
  table = await server.createTable();
  replica = await openAuthReplica(table);
  const outcome = replica.authenticate(table.rootToken);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  root = outcome.caller.accessor;
});

function policy(name: string, effect: 'allow' | 'deny' = 'allow'): Policy {
  return { name, rules: [{ effect }] };
}

function issue({ auth }: AuthReplica) {
  return issueToken(auth, root, { policies: [], bound_cidrs: [], management: true, ttl_seconds: 1000 });
}

async function issueClient({ auth }: AuthReplica, policies: string[]): Promise<string> {
  const outcome = await issueToken(auth, root, { policies, bound_cidrs: [], management: false, ttl_seconds: 1000 });
  if (outcome.kind === 'refused') throw new Error(outcome.hint);
  return outcome.answer.accessor;
}

async function names({ auth }: AuthReplica): Promise<string[]> {
  await auth.refresh();
  return policiesOf(auth.snapshot).map(({ name }) => name);
}

/** The state as this test wants it to behave in one respect. */
function stateWith(changes: Partial<StateTable>): StateTable {
  return { ...table.state, ...changes };
}

/** The state through the fault proxy. */
function throughProxy(patience: AwsClientOptions = PATIENT): StateTable & Disposable {
  const client = createDynamoDBClient(dynamoDBClientOptions(proxy.endpoint, patience));
  return { ...stateTable(client, table.state.tableName), [Symbol.dispose]: () => client.destroy() };
}

describe('races', () => {
  test('changes of four replicas at once are all made', async () => {
    const replicas = await Promise.all(Array.from({ length: 4 }, () => openAuthReplica(table)));
    const outcomes = await Promise.all(
      replicas.flatMap(({ auth }, replicaIndex) =>
        Array.from({ length: 5 }, (_, index) => createPolicy(auth, root, policy(`p-${replicaIndex}-${index}`))),
      ),
    );
    expect(outcomes.every(({ kind }) => kind === 'done')).toBe(true);
    for (const each of replicas) expect(await names(each)).toHaveLength(20);
    expect(replicas.map(({ auth }) => auth.revision)).toEqual([21, 21, 21, 21]);
  });

  test('of many who create the same policy one does, and the others are told that it is there', async () => {
    const replicas = await Promise.all(Array.from({ length: 4 }, () => openAuthReplica(table)));
    const outcomes = await Promise.all(replicas.map(({ auth }) => createPolicy(auth, root, policy('same'))));
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    expect(
      outcomes.filter((outcome) => outcome.kind === 'refused' && outcome.reason === 'already_exists'),
    ).toHaveLength(3);
  });

  test('a policy is never deleted under a token that is made at the same time', async () => {
    const other = await openAuthReplica(table);
    for (let round = 0; round < 15; round++) {
      const name = `p-${round}`;
      await createPolicy(replica.auth, root, policy(name, 'deny'));
      await other.auth.refresh();
      const [deleted, issued] = await Promise.all([
        deletePolicy(replica.auth, root, name),
        issueToken(other.auth, root, { policies: [name], bound_cidrs: [], management: false }),
      ]);
      expect([deleted.kind, issued.kind].toSorted()).toEqual(['done', 'refused']);
    }
  });

  test('changes that wait are limited', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: MAX_WAITING_CHANGES + 3 }, (_, index) =>
        createPolicy(replica.auth, root, policy(`p-${index}`)),
      ),
    );
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.map(({ reason }) => (reason as { reason: string }).reason)).toEqual(Array(3).fill('overloaded'));
    expect(await names(replica)).toHaveLength(MAX_WAITING_CHANGES);
  });

  test('who loses every race is told to try again, and nothing was changed', async () => {
    let attempts = 0;
    const commit = async () => {
      attempts += 1;
      return 'conflict' as const;
    };
    const unlucky = await openAuthReplica(table, { state: stateWith({ commit }) });
    await expect(createPolicy(unlucky.auth, root, policy('mine'))).rejects.toMatchObject({ reason: 'overloaded' });
    expect(attempts).toBe(10);
    expect(await names(replica)).toEqual([]);
  });
});

describe('lost answers', () => {
  let accessor: string;

  test.each([
    ['the answer is lost on the way', FAULTS.dropAnswer],
    ['the connection breaks after the write', FAULTS.resetAfter],
    ['an error is answered after the write', FAULTS.internalErrorAfterApplying],
    ['the connection breaks before the write', FAULTS.resetBefore],
    ['throttling', FAULTS.throttled],
  ])('%s: the change is made once and answered as made', async (_what, fault) => {
    using state = throughProxy();
    const writer = await openAuthReplica(table, { state });
    proxy.setRule(faultTimes(1, fault, 'TransactWriteItems'));
    expect(await createPolicy(writer.auth, root, policy('mine'))).toMatchObject({ kind: 'done' });
    expect(proxy.faults).toBeGreaterThan(0);
    expect(await names(replica)).toEqual(['mine']);
    expect(replica.auth.revision).toBe(2);
  });

  test.each([
    ['create a policy', (auth: AuthReplica['auth']) => createPolicy(auth, root, policy('mine'))],
    ['delete a policy', (auth: AuthReplica['auth']) => deletePolicy(auth, root, 'there')],
    ['create a token', (auth: AuthReplica['auth']) => issue({ auth } as AuthReplica)],
    ['revoke a token', (auth: AuthReplica['auth']) => revokeToken(auth, root, accessor)],
    ['renew a token', (auth: AuthReplica['auth']) => renewToken(auth, accessor, 10)],
  ])('%s: our own write that another one follows is recognised, not refused or repeated', async (_what, change) => {
    await createPolicy(replica.auth, root, policy('there'));
    await createPolicy(replica.auth, root, policy('bound'));
    accessor = await issueClient(replica, ['bound']);
    let commits = 0;
    const commit: StateTable['commit'] = async (...write) => {
      commits += 1;
      await table.state.commit(...write);
      await replica.auth.refresh();
      await createPolicy(replica.auth, root, policy('unrelated'));
      return 'conflict';
    };
    const writer = await openAuthReplica(table, { state: stateWith({ commit }) });
    expect(await change(writer.auth)).toMatchObject({ kind: 'done' });
    expect(commits).toBe(1);
    expect(await names(writer)).toContain('unrelated');
  });
  test('a table that cannot be written: 503, and what is held stays', async () => {
    using state = throughProxy();
    const writer = await openAuthReplica(table, { state });
    proxy.setRule(() => FAULTS.resetBefore);
    await expect(createPolicy(writer.auth, root, policy('mine'))).rejects.toMatchObject({ reason: 'state_stale' });
    await expect(writer.auth.refresh()).rejects.toMatchObject({ reason: 'state_stale' });
    expect(writer.authenticate(table.rootToken)).toMatchObject({ kind: 'caller' });
    expect(writer.rejectedHeads).toEqual([]);
    proxy.setRule(undefined);
    expect(await createPolicy(writer.auth, root, policy('mine'))).toMatchObject({ kind: 'done' });
  });

  test('with 30 % errors every change that is answered as made is there, and none is refused wrongly', async () => {
    using state = throughProxy(GIVES_UP);
    const writer = await openAuthReplica(table, { state });
    proxy.setRule(randomFaults(7, 0.3, Object.values(FAULTS)));
    const made: string[] = [];
    const [answers, failures]: [string[], string[]] = [[], []];
    for (let index = 0; index < 30; index++) {
      const name = `p-${index}`;
      const [outcome] = await Promise.allSettled([createPolicy(writer.auth, root, policy(name))]);
      if (outcome.status === 'fulfilled') answers.push(outcome.value.kind);
      else failures.push((outcome.reason as { reason: string }).reason);
      if (outcome.status === 'fulfilled') made.push(name);
    }
    proxy.setRule(undefined);
    expect(await names(replica)).toEqual(expect.arrayContaining(made));
    expect(made.length).toBeGreaterThan(10);
    expect(new Set(answers)).toEqual(new Set(['done']));
    expect(failures.every((reason) => reason === 'state_stale')).toBe(true);
    expect(writer.rejectedRows).toEqual([]);
    expect(writer.rejectedHeads).toEqual([]);
  });
});

describe('reading a table that is being written', () => {
  test('a row that moves after it was read is read again, with the head of that moment', async () => {
    await createPolicy(replica.auth, root, policy('moving'));
    let scans = 0;
    const readRows: StateTable['readRows'] = async (pks) => {
      scans += 1;
      const rows = await table.state.readRows(pks);
      await replacePolicy(replica.auth, root, policy('moving', 'deny'));
      return rows;
    };
    const reader = await openAuthReplica(table, { state: stateWith({ readRows }) });
    expect(policiesOf(reader.auth.snapshot)[0]?.rules).toEqual([{ effect: 'deny' }]);
    expect(reader.auth.revision).toBe(replica.auth.revision);
    expect([scans, reader.rejectedRows]).toEqual([1, []]);
  });

  test('rows that are deleted and made meanwhile are no suspects', async () => {
    await createPolicy(replica.auth, root, policy('leaving'));
    const readRows: StateTable['readRows'] = async (pks) => {
      const rows = await table.state.readRows(pks);
      await deletePolicy(replica.auth, root, 'leaving');
      await createPolicy(replica.auth, root, policy('coming'));
      return rows;
    };
    const reader = await openAuthReplica(table, { state: stateWith({ readRows }) });
    expect(await names(reader)).toEqual(['coming']);
    expect(reader.rejectedRows).toEqual([]);
  });

  test('more rows than fit one transaction: everything is read again', async () => {
    let scans = 0;
    const readRows: StateTable['readRows'] = async (pks) => {
      scans += 1;
      const rows = await table.state.readRows(pks);
      if (scans > 1) return rows;
      for (let index = 0; index <= MAX_TOKENS_TOGETHER; index++) await issue(replica);
      return rows;
    };
    const reader = await openAuthReplica(table, { state: stateWith({ readRows }) });
    expect(scans).toBe(2);
    expect(tokensOf(reader.auth.snapshot)).toHaveLength(MAX_TOKENS_TOGETHER + 2);
    expect(reader.rejectedRows).toEqual([]);
  });

  test('a token that is renewed all the time does not keep a replica from reading', async () => {
    await createPolicy(replica.auth, root, policy('bound'));
    const accessor = await issueClient(replica, ['bound']);
    const readTogether: StateTable['readTogether'] = async (pks) => {
      replica.clock.advance(0.001);
      await renewToken(replica.auth, accessor, undefined); // before every look at the head
      return table.state.readTogether(pks);
    };
    const reader = await openAuthReplica(table, { state: stateWith({ readTogether }) });
    for (let round = 0; round < 3; round++) {
      await reader.auth.refresh();
      expect(reader.auth.revision).toBe(replica.auth.revision);
    }
  });

  test('a table that never stands still is an error, not a guess', async () => {
    let policies = 0;
    const readTogether: StateTable['readTogether'] = async (pks) => {
      policies += 1;
      await createPolicy(replica.auth, root, policy(`p-${policies}`));
      return table.state.readTogether(pks);
    };
    const state = stateWith({ readTogether, readRows: async () => [] });
    const reader = await openAuthReplica(table, { state, refreshed: false });
    await expect(reader.auth.refresh()).rejects.toMatchObject({ reason: 'state_stale' });
    expect(reader.auth.revision).toBe(0);
  });

  test('no reader holds half of one revision and half of another, whenever the writer comes in between', async () => {
    // `a` and `b` are wide in turns and never at once: only a mixture could have both.
    const turns = [policy('a', 'allow'), policy('a', 'deny'), policy('b', 'allow'), policy('b', 'deny')];
    await createPolicy(replica.auth, root, policy('a', 'deny'));
    await createPolicy(replica.auth, root, policy('b', 'deny'));
    let turn = 0;
    const write = async (times: number) => {
      for (let time = 0; time < times; time++) {
        await replacePolicy(replica.auth, root, turns[turn % turns.length] as Policy);
        turn += 1;
      }
    };
    const seen = new Set<string>();
    for (let schedule = 0; schedule < 4 ** 3; schedule++) {
      const [between, inScan, afterwards] = [schedule % 4, Math.floor(schedule / 4) % 4, Math.floor(schedule / 16)];
      const readRows: StateTable['readRows'] = async (pks) => {
        await write(between);
        const a = (await table.state.readRows(pks)).filter(({ pk }) => pk !== 'POLICY#b');
        await write(inScan);
        const b = (await table.state.readRows(pks)).filter(({ pk }) => pk === 'POLICY#b');
        await write(afterwards);
        return [...a, ...b];
      };
      const reader = await openAuthReplica(table, { state: stateWith({ readRows }) });
      seen.add(
        policiesOf(reader.auth.snapshot)
          .map(({ rules }) => rules[0]?.effect)
          .join(),
      );
      expect(reader.auth.revision).toBe(replica.auth.revision);
      expect(reader.rejectedRows).toEqual([]);
    }
    expect([...seen].toSorted()).toEqual(['allow,deny', 'deny,allow', 'deny,deny']);
  });
});
