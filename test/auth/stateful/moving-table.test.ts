// Readers in the middle of writes: no replica ever holds a mixture of two revisions, and a table that never stands
// still is an error.

import { describe, expect, it } from 'vitest';
import type { Policy } from '../../../signer/api/policy.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../../signer/auth/stateful/policies.ts';
import { policiesOf, tokensOf } from '../../../signer/auth/stateful/snapshot.ts';
import { MAX_TOKENS_TOGETHER } from '../../../signer/auth/stateful/state.ts';
import { renewToken } from '../../../signer/auth/stateful/tokens.ts';
import type { StateTable } from '../../../signer/chamber/state-table.ts';
import { openAuthReplica } from '../../support/stateful-auth.ts';
import { issue, issueClient, names, policy, replica, root, stateWith, table } from './writers-set-up.ts';

describe('reading a table that is being written', () => {
  it('a row that moves after it was read is read again, with the head of that moment', async () => {
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

  it('rows that are deleted and made meanwhile are no suspects', async () => {
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

  it('more rows than fit one transaction: everything is read again', async () => {
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

  it('a token that is renewed all the time does not keep a replica from reading', async () => {
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

  it('a table that never stands still is an error, not a guess', async () => {
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

  it('no reader holds half of one revision and half of another, whenever the writer comes in between', async () => {
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
