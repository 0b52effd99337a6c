// Many writers and lost answers: every change is made once or not at all, and what is answered is durable.

import { describe, expect, it } from 'vitest';
import { createPolicy, deletePolicy } from '../../../signer/auth/stateful/policies.ts';
import { MAX_WAITING_CHANGES } from '../../../signer/auth/stateful/stateful.ts';
import { issueToken, renewToken, revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import type { StateTable } from '../../../signer/chamber/state-table.ts';
import { FAULTS, faultTimes, randomFaults } from '../../support/fault-proxy.ts';
import { GIVES_UP } from '../../support/patience.ts';
import { type AuthReplica, openAuthReplica } from '../../support/stateful-auth.ts';
import {
  issue,
  issueClient,
  names,
  policy,
  proxy,
  replica,
  root,
  stateWith,
  table,
  throughProxy,
} from './writers-set-up.ts';

describe('races', () => {
  it('changes of four replicas at once are all made', async () => {
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

  it('of many who create the same policy one does, and the others are told that it is there', async () => {
    const replicas = await Promise.all(Array.from({ length: 4 }, () => openAuthReplica(table)));
    const outcomes = await Promise.all(replicas.map(({ auth }) => createPolicy(auth, root, policy('same'))));
    expect(outcomes.filter(({ kind }) => kind === 'done')).toHaveLength(1);
    expect(
      outcomes.filter((outcome) => outcome.kind === 'refused' && outcome.reason === 'already_exists'),
    ).toHaveLength(3);
  });

  it('a policy is never deleted under a token that is made at the same time', async () => {
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

  it('changes that wait are limited', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: MAX_WAITING_CHANGES + 3 }, (_, index) =>
        createPolicy(replica.auth, root, policy(`p-${index}`)),
      ),
    );
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.map(({ reason }) => (reason as { reason: string }).reason)).toEqual(Array(3).fill('overloaded'));
    expect(await names(replica)).toHaveLength(MAX_WAITING_CHANGES);
  });

  it('who loses every race is told to try again, and nothing was changed', async () => {
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

  it.each([
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

  it.each([
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
  it('a table that cannot be written: 503, and what is held stays', async () => {
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

  it('with 30 % errors every change that is answered as made is there, and none is refused wrongly', async () => {
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
