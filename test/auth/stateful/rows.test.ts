// Whoever can write the state table: rows that were altered, moved, put back or hidden count as missing, and nobody has
// more than before.

import { describe, expect, it } from 'vitest';
import { createPolicy, deletePolicy } from '../../../signer/auth/stateful/policies.ts';
import { makeRow, newCommit } from '../../../signer/auth/stateful/rows.ts';
import { LOOK_AGAIN_SECONDS } from '../../../signer/auth/stateful/stateful.ts';
import { revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import { type AuthReplica, openAuthReplica } from '../../support/stateful-auth.ts';
import {
  ALLOW_ALL,
  client,
  FORGED_KEY,
  honestChange,
  manager,
  NOTHING,
  powers,
  revoked,
  revokedRow,
  root,
  table,
  wide,
} from './table-history.ts';

function reasonsLogged({ log }: AuthReplica): unknown[] {
  return log.lines
    .filter(({ message }) => message.includes('not believed'))
    .map(({ fields }) => [fields['pk'], fields['why']]);
}

interface Attack {
  readonly what: string;
  readonly attack: () => Promise<void>;
  /** What a replica that starts on it says of the rows. */
  readonly logged: () => readonly (readonly [string, string])[];
  readonly loses: () => readonly string[];
}

const ATTACKS: readonly Attack[] = [
  {
    what: 'a policy row that is altered',
    attack: async () => {
      const row = await table.row('POLICY#signer');
      await table.putRow({ ...row, content: row.content.replace('"public_keys"', '"sign"') });
    },
    logged: () => [['POLICY#signer', 'altered']],
    loses: () => [client.token],
  },
  {
    what: 'a policy row of which one bit of the code is altered',
    attack: async () => {
      const row = await table.row('POLICY#signer');
      const mac = Buffer.from(row.mac);
      mac[31] = (mac[31] ?? 0) ^ 1;
      await table.putRow({ ...row, mac });
    },
    logged: () => [['POLICY#signer', 'altered']],
    loses: () => [client.token],
  },
  {
    what: 'a policy row whose code is cut off',
    attack: async () => {
      const row = await table.row('POLICY#signer');
      await table.putRow({ ...row, mac: row.mac.subarray(0, 16) });
    },
    logged: () => [['POLICY#signer', 'altered']],
    loses: () => [client.token],
  },
  {
    what: 'a policy row that says a newer revision',
    attack: async () => table.putRow({ ...wide, revision: wide.revision + 100 }),
    logged: () => [['POLICY#signer', 'altered']],
    loses: () => [client.token],
  },
  {
    what: 'an older, wider policy row that is put back',
    attack: async () => table.putRow(wide),
    logged: () => [['POLICY#signer', 'replayed']],
    loses: () => [client.token],
  },
  {
    what: 'the row of one policy under the name of another',
    attack: async () => table.putRow({ ...(await table.row('POLICY#signer')), pk: 'POLICY#other' }),
    logged: () => [['POLICY#other', 'altered']],
    loses: () => [manager.token],
  },
  {
    what: 'a policy row under the accessor of a token, and the other way round',
    attack: async () => {
      const [policy, token] = [await table.row('POLICY#signer'), await table.row(`TOKEN#${client.accessor}`)];
      await table.putRow({ ...policy, pk: token.pk });
      await table.putRow({ ...token, pk: policy.pk });
    },
    logged: () => [
      ['POLICY#signer', 'altered'],
      [`TOKEN#${client.accessor}`, 'altered'],
    ],
    loses: () => [client.token],
  },
  {
    what: 'a policy row that is deleted',
    attack: () => table.deleteRow('POLICY#signer'),
    logged: () => [['POLICY#signer', 'missing']],
    loses: () => [client.token],
  },
  {
    what: 'a policy row of a management token that is deleted',
    attack: () => table.deleteRow('POLICY#other'),
    logged: () => [['POLICY#other', 'missing']],
    loses: () => [manager.token],
  },
  {
    what: 'a revoked token that is put in again',
    attack: () => table.putRow(revokedRow),
    logged: () => [], // nothing names it: it is not even read
    loses: () => [],
  },
  {
    what: 'a token row that is deleted',
    attack: () => table.deleteRow(`TOKEN#${client.accessor}`),
    logged: () => [[`TOKEN#${client.accessor}`, 'missing']],
    loses: () => [client.token],
  },
  {
    what: 'a policy that was made with another key',
    attack: () => table.putRow(makeRow(FORGED_KEY, 'POLICY#signer', newCommit(wide.revision), ALLOW_ALL)),
    logged: () => [['POLICY#signer', 'altered']],
    loses: () => [client.token],
  },
  {
    what: 'rows that are nobody’s',
    attack: async () => {
      await table.putRow(makeRow(FORGED_KEY, 'POLICY#extra', newCommit(1), ALLOW_ALL));
      await table.putRow({ pk: 'TOKEN#', revision: -1, content: 'not JSON', mac: new Uint8Array([1]) });
    },
    logged: () => [],
    loses: () => [],
  },
];

describe.each(ATTACKS)('$what', ({ attack, logged, loses }) => {
  it('counts as missing when a replica starts: logged, counted, and nobody has more than before', async () => {
    const before = await openAuthReplica(table);
    await attack();
    const after = await openAuthReplica(table);
    expect(reasonsLogged(after).sort()).toEqual(logged().toSorted());
    expect(after.rejectedRows).toHaveLength(logged().length);
    for (const { token } of [client, revoked, manager, { token: table.rootToken }]) {
      const expected = loses().includes(token) ? NOTHING : powers(before, token);
      expect(powers(after, token)).toMatchObject(expected);
    }
    expect(powers(after, revoked.token).entersAs).toBe('invalid_token');
  });

  it.each([true, false])(
    'counts as missing when a running replica reads the rows again; the head moved: %s',
    async (hasMoved) => {
      const running = await openAuthReplica(table);
      const before = [client, revoked, manager].map(({ token }) => powers(running, token));
      await attack();
      if (hasMoved) await honestChange();
      expect(running.auth.missingRows).toBe(0);
      running.clock.advance(LOOK_AGAIN_SECONDS);
      expect(running.auth.head()).toBeUndefined(); // so the watcher refreshes
      for (let looks = 1; looks <= 2; looks++) {
        await running.auth.refresh();
        expect(running.auth.missingRows).toBe(logged().length);
        expect(running.rejectedRows).toHaveLength(looks * logged().length);
        running.clock.advance(LOOK_AGAIN_SECONDS);
      }
      expect(reasonsLogged(running).sort()).toEqual(logged().toSorted());
      for (const [index, { token }] of [client, revoked, manager].entries()) {
        expect(powers(running, token)).toMatchObject(loses().includes(token) ? NOTHING : (before[index] ?? NOTHING));
      }
    },
  );
});

describe('what an administrator does about rows that are hidden', () => {
  it('a token whose row is gone can be revoked, and is not revived by putting the row back', async () => {
    const row = await table.row(`TOKEN#${client.accessor}`);
    await table.deleteRow(row.pk);
    const replica = await openAuthReplica(table);
    expect(await revokeToken(replica.auth, root, client.accessor)).toMatchObject({ kind: 'done' });
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), client.token).entersAs).toBe('invalid_token');
  });

  it('a policy whose row is gone can be deleted once nothing visible is bound to it, or be made anew', async () => {
    const row = await table.row('POLICY#signer');
    await table.deleteRow(row.pk);
    const replica = await openAuthReplica(table);
    expect(await deletePolicy(replica.auth, root, 'signer')).toMatchObject({ reason: 'policy_in_use' });
    const rules = [{ effect: 'allow', scopes: ['list_keys'] }] as const;
    expect(await createPolicy(replica.auth, root, { name: 'signer', rules })).toMatchObject({ kind: 'done' });
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), client.token)).toMatchObject({ sign: false, list: false });
  });

  it('a deny policy that was deleted while its token was hidden denies that token everything', async () => {
    const row = await table.row(`TOKEN#${client.accessor}`);
    await table.deleteRow(row.pk);
    const replica = await openAuthReplica(table);
    expect(await deletePolicy(replica.auth, root, 'signer')).toMatchObject({ kind: 'done' });
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), client.token)).toEqual({ ...NOTHING, entersAs: 'caller' });
  });
});
