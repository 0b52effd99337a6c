// When a change counts, on the replica that made it and on others: at once or after a refresh, never undone by an
// answer that is late.

import { beforeEach, describe, expect, it } from 'vitest';
import { createPolicy, deletePolicy, replacePolicy } from '../../../signer/auth/stateful/policies.ts';
import { LOOK_AGAIN_SECONDS } from '../../../signer/auth/stateful/stateful.ts';
import { issueToken, revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import { type AuthReplica, type AuthTable, openAuthReplica } from '../../support/stateful-auth.ts';
import { done, issue, maySign, outcomeOf, replica, root, SIGNER, table } from './replica-set-up.ts';

/** The third: two are those of the first load. */
const SLOW_READ = 3;

describe('two replicas', () => {
  let other: AuthReplica;
  beforeEach(async () => {
    other = await openAuthReplica(table, { clock: replica.clock });
  });

  it('a change counts at once where it was made and after a refresh elsewhere', async () => {
    const { token, accessor } = await issue();
    expect([maySign(replica, token), maySign(other, token)]).toEqual([true, false]);
    await other.auth.refresh();
    expect(maySign(other, token)).toBe(true);

    await done(replacePolicy(replica.auth, root, { ...SIGNER, rules: [{ effect: 'allow', scopes: ['list_keys'] }] }));
    expect([maySign(replica, token), maySign(other, token)]).toEqual([false, true]);
    await other.auth.refresh();
    expect(maySign(other, token)).toBe(false);

    await done(revokeToken(other.auth, root, accessor));
    expect([outcomeOf(replica, token), outcomeOf(other, token)]).toEqual(['caller', 'invalid_token']);
    await replica.auth.refresh();
    expect(outcomeOf(replica, token)).toBe('invalid_token');
  });

  it('a refresh that was asked for after a change shows it, also while one is under way that read the head before', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: headRead, resolve: tellHeadRead } = Promise.withResolvers<void>();
    let reads = 0;
    const readTogether: AuthTable['state']['readTogether'] = async (pks) => {
      const view = await table.state.readTogether(pks);
      reads += 1;
      if (reads === SLOW_READ) {
        tellHeadRead();
        await released;
      }
      return view;
    };
    const slow = await openAuthReplica(table, { state: { ...table.state, readTogether } });
    const earlier = slow.auth.refresh();
    await headRead;
    const { token } = await issue();
    const later = [slow.auth.refresh(), slow.auth.refresh()];
    release();
    await earlier;
    await Promise.all(later);
    expect(outcomeOf(slow, token)).toBe('caller');
  });

  it('a late answer to a commit does not undo what a refresh has shown meanwhile', async () => {
    const commit: AuthTable['state']['commit'] = async (...write) => {
      const outcome = await table.state.commit(...write);
      await other.auth.refresh();
      await done(revokeToken(other.auth, root, accessor));
      await late.auth.refresh();
      return outcome;
    };
    const late = await openAuthReplica(table, { state: { ...table.state, commit } });
    const { token, accessor } = await issue();
    await late.auth.refresh();
    expect(outcomeOf(late, token)).toBe('caller');
    await done(createPolicy(late.auth, root, { ...SIGNER, name: 'slow' }));
    expect(outcomeOf(late, token)).toBe('invalid_token');
    expect(late.auth.revision).toBe(other.auth.revision);
  });

  it('without a change the rows are not read again, with one only those that changed', async () => {
    let reads = 0;
    let asked: readonly string[] = [];
    const readRows: AuthTable['state']['readRows'] = (pks) => {
      reads += 1;
      asked = pks;
      return table.state.readRows(pks);
    };
    const state = { ...table.state, readRows };
    const counted = await openAuthReplica(table, { state });
    await counted.auth.refresh();
    await counted.auth.refresh();
    expect([reads, asked.length]).toEqual([1, 2]);
    const { accessor } = await issue();
    await counted.auth.refresh();
    expect([reads, asked]).toEqual([2, [`TOKEN#${accessor}`]]);
    counted.clock.advance(LOOK_AGAIN_SECONDS);
    await issue();
    await counted.auth.refresh();
    expect([reads, asked.length]).toEqual([3, 4]);
  });

  it('a writer that is behind writes on what the other one has made', async () => {
    const first = await issue();
    const second = await issue({}, other);
    await replica.auth.refresh();
    for (const { token } of [first, second]) {
      expect([outcomeOf(replica, token), outcomeOf(other, token)]).toEqual(['caller', 'caller']);
    }
  });

  it('a management token that was revoked elsewhere changes nothing, even before this replica knows', async () => {
    const manager = await issue({ management: true, policies: [] });
    await other.auth.refresh();
    await done(revokeToken(replica.auth, root, manager.accessor));
    expect(other.authenticate(manager.token)).toMatchObject({ kind: 'caller' }); // it does not know yet
    const outcome = await issueToken(other.auth, manager.accessor, {
      policies: [],
      bound_cidrs: [],
      management: true,
    });
    expect(outcome).toEqual({ kind: 'refused', reason: 'invalid_token' });
    expect((await table.rows()).filter(({ pk }) => pk.startsWith('TOKEN#'))).toHaveLength(1);
  });

  it('a client token changes nothing but its own lifetime', async () => {
    const { accessor } = await issue();
    expect(await createPolicy(replica.auth, accessor, { ...SIGNER, name: 'mine' })).toMatchObject({ reason: 'denied' });
    expect(await deletePolicy(replica.auth, accessor, 'signer')).toMatchObject({ reason: 'denied' });
    expect(await revokeToken(replica.auth, accessor, root)).toMatchObject({ reason: 'denied' });
  });
});
