// The head of the state table, and a new root token: a table that was rolled back, altered or mixed is not followed.

import { describe, expect, it } from 'vitest';
import { createPolicy, replacePolicy } from '../../../signer/auth/stateful/policies.ts';
import { makeHead, newCommit } from '../../../signer/auth/stateful/rows.ts';
import { revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import { createToken } from '../../../signer/auth/tokens.ts';
import { replaceRootToken } from '../../../signer/boot/custody.ts';
import { openAuthReplica, START, testKeys } from '../../support/stateful-auth.ts';
import {
  client,
  FORGED_KEY,
  honestChange,
  manager,
  NOTHING,
  oldHead,
  powers,
  revoked,
  revokedRow,
  root,
  table,
  wide,
} from './table-history.ts';

describe('the head', () => {
  const HEADS: readonly (readonly [string, () => Promise<void>, string])[] = [
    ['an older one that is put back', () => table.putHead(oldHead), 'rolled_back'],
    [
      'an older one that says a newer revision',
      async () => table.putHead({ ...oldHead, revision: oldHead.revision + 100 }),
      'altered',
    ],
    [
      'one with another manifest',
      async () => {
        const head = await table.head();
        await table.putHead({ ...head, revision: head.revision + 1, manifest: oldHead.manifest });
      },
      'altered',
    ],
    [
      'one that was made with another key',
      async () => {
        const rows = new Map([['POLICY#signer', 'A'.repeat(22)]]);
        await table.putHead(makeHead(FORGED_KEY, newCommit(1000), { root: null, rows }));
      },
      'altered',
    ],
    ['none at all', () => table.deleteRow('AUTH_REVISION'), 'missing'],
  ];

  it.each(HEADS)(
    '%s: a running replica keeps what it has, says so once, and tells its watcher every time',
    async (_what, attack, problem) => {
      const running = await openAuthReplica(table);
      const before = [client, revoked, manager].map(({ token }) => powers(running, token));
      await attack();
      await table.putRow(wide);
      await table.putRow(revokedRow);
      await expect(running.auth.refresh()).rejects.toMatchObject({ reason: 'state_stale', problem });
      await expect(running.auth.refresh()).rejects.toMatchObject({ reason: 'state_stale', problem });
      expect([client, revoked, manager].map(({ token }) => powers(running, token))).toEqual(before);
      expect(running.rejectedHeads).toEqual([problem, problem]);
      const said = running.log.lines.filter(({ fields }) => fields['problem'] === problem);
      expect(said).toHaveLength(1);
      expect(said[0]).toMatchObject({ level: 'error', message: expect.stringContaining('restart every replica') });
    },
  );

  it.each(HEADS)('%s: changes are refused with 503 and nothing is written', async (_what, attack) => {
    const running = await openAuthReplica(table);
    await attack();
    const rows = await table.rows();
    await expect(revokeToken(running.auth, root, client.accessor)).rejects.toMatchObject({ reason: 'state_stale' });
    expect(await table.rows()).toEqual(rows);
  });

  it.each(HEADS.filter(([, , problem]) => problem !== 'rolled_back'))(
    '%s: a replica that starts on it does not start',
    async (_what, attack, problem) => {
      await attack();
      await expect(openAuthReplica(table)).rejects.toMatchObject({ problem });
    },
  );

  it('put right again, it is believed again', async () => {
    const head = await table.head();
    const running = await openAuthReplica(table);
    await table.putHead(oldHead);
    await expect(running.auth.refresh()).rejects.toMatchObject({ problem: 'rolled_back' });
    await table.putHead(head);
    await running.auth.refresh();
    await honestChange();
    await running.auth.refresh();
    expect(running.auth.revision).toBe(head.revision + 1);
  });

  it('a table that went back and took another way is not followed at the same revision', async () => {
    const running = await openAuthReplica(table);
    const current = await table.head();
    await table.putHead(oldHead);
    const fresh = await openAuthReplica(table); // it cannot know better
    while (fresh.auth.revision < current.revision) {
      await createPolicy(fresh.auth, root, { name: `fork-${fresh.auth.revision}`, rules: [{ effect: 'allow' }] });
    }
    await expect(running.auth.refresh()).rejects.toMatchObject({ problem: 'rolled_back' });
  });

  it('rows of two ways that the table took cannot be mixed', async () => {
    const rules = [{ effect: 'allow' }] as const;
    const one = await openAuthReplica(table);
    const before = [await table.head(), await table.row('POLICY#signer')] as const;
    await replacePolicy(one.auth, root, { name: 'signer', rules });
    const widened = await table.row('POLICY#signer');
    await table.putHead(before[0]);
    await table.putRow(before[1]);
    const other = await openAuthReplica(table);
    await replacePolicy(other.auth, root, { name: 'signer', rules: [{ effect: 'deny' }] });
    expect((await table.row('POLICY#signer')).revision).toBe(widened.revision);
    await table.putRow(widened); // authentic, of the same name and revision
    expect(powers(await openAuthReplica(table), client.token)).toMatchObject(NOTHING);
  });
});

async function recreate(): Promise<string> {
  const token = createToken('management');
  const head = await table.head();
  const { changes, head: next } = replaceRootToken(testKeys(), head, token, START);
  expect(await table.state.commit(head.revision, changes, next)).toBe('committed');
  return token.toString('ascii');
}

describe('a new root token', () => {
  it('replaces the earlier one and leaves everything else, also on a running replica', async () => {
    const running = await openAuthReplica(table);
    const before = [client, manager].map(({ token }) => powers(running, token));
    const token = await recreate();
    await running.auth.refresh();
    expect(powers(running, table.rootToken).entersAs).toBe('invalid_token');
    expect(powers(running, token)).toMatchObject({ entersAs: 'caller', management: true });
    expect([client, manager].map(({ token: other }) => powers(running, other))).toEqual(before);
  });

  it('an earlier one that was hidden meanwhile does not come back', async () => {
    const row = await table.row(`TOKEN#${root}`);
    await table.deleteRow(row.pk);
    await recreate();
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), table.rootToken).entersAs).toBe('invalid_token');
  });

  it('beside a head that does not verify: nothing but the new root token counts', async () => {
    const head = await table.head();
    await table.putHead({ ...head, manifest: oldHead.manifest });
    const token = await recreate();
    const fresh = await openAuthReplica(table);
    expect(powers(fresh, token)).toMatchObject({ entersAs: 'caller', management: true });
    for (const { token: old } of [client, manager, { token: table.rootToken }]) {
      expect(powers(fresh, old).entersAs).toBe('invalid_token');
    }
  });

  it('a revision that nothing can follow stops it and says what to do', async () => {
    const head = { ...(await table.head()), revision: Number.MAX_SAFE_INTEGER };
    expect(() => replaceRootToken(testKeys(), head, createToken('management'), START)).toThrow(
      /AUTH_REVISION was altered: delete the row/,
    );
  });
});
