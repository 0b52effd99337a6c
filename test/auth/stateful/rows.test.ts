// Whoever can write the state table and has no key: what forged, altered, moved, replayed and deleted rows are worth,
// to a replica that starts and to one that runs. They count as missing, are logged and counted, and never widen access.

import { beforeEach, describe, expect, test } from 'vitest';
import { OPERATIONS, type Operation } from '../../../enclave/api/operations.ts';
import type { Rule } from '../../../enclave/api/policy.ts';
import { evaluate } from '../../../enclave/auth/evaluate.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../../enclave/auth/stateful/policies.ts';
import { replaceRootToken } from '../../../enclave/auth/stateful/root-token.ts';
import {
  makeHead,
  makeRow,
  newCommit,
  openHead,
  parsePolicyText,
  policyFields,
} from '../../../enclave/auth/stateful/rows.ts';
import { policyRecord, verifyRow } from '../../../enclave/auth/stateful/snapshot.ts';
import {
  type AuthHead,
  type AuthRow,
  MAX_MANIFEST_BYTES,
  MAX_POLICIES,
  MAX_TOKENS,
} from '../../../enclave/auth/stateful/state.ts';
import { LOOK_AGAIN_SECONDS } from '../../../enclave/auth/stateful/stateful.ts';
import { issueToken, revokeToken } from '../../../enclave/auth/stateful/tokens.ts';
import { createToken } from '../../../enclave/auth/tokens.ts';
import {
  type AuthReplica,
  type AuthTable,
  authServerOfFile,
  openAuthReplica,
  START,
  testKeys,
} from '../../support/stateful-auth.ts';

const SIGN = { scope: 'sign', publicKey: `0x${'11'.repeat(48)}`, operation: 'ATTESTATION' } as const;
const ALLOW_ALL = policyFields({
  createdAt: new Date(START).toISOString(),
  updatedAt: new Date(START).toISOString(),
  rules: [{ effect: 'allow' }],
});
const FORGED_KEY = Buffer.alloc(32, 0xee);

const server = authServerOfFile();
/** A history: what every row and head once was, and what has become of them. */
let table: AuthTable;
let root: string;
let wide: AuthRow;
let client: { accessor: string; token: string };
let revoked: { accessor: string; token: string };
let revokedRow: AuthRow;
let manager: { accessor: string; token: string };
let oldHead: AuthHead;

beforeEach(async () => {
  table = await server.createTable();
  const { auth, authenticate } = await openAuthReplica(table);
  root = accessorOf(authenticate(table.rootToken));
  await createPolicy(auth, root, { name: 'signer', rules: [{ effect: 'allow' }] });
  await createPolicy(auth, root, { name: 'other', rules: [{ effect: 'allow', scopes: ['list_keys'] }] });
  wide = await table.row('POLICY#signer');
  client = await issue(auth, { policies: ['signer'] });
  revoked = await issue(auth, { policies: ['signer'] });
  manager = await issue(auth, { management: true, policies: ['other'] });
  revokedRow = await table.row(`TOKEN#${revoked.accessor}`);
  oldHead = await table.head();
  await replacePolicy(auth, root, { name: 'signer', rules: [{ effect: 'allow', scopes: ['public_keys'] }] });
  await revokeToken(auth, root, revoked.accessor);
});

async function issue(auth: AuthReplica['auth'], request: { policies: string[]; management?: boolean }) {
  const outcome = await issueToken(auth, root, { bound_cidrs: [], management: false, ...request });
  if (outcome.kind === 'refused') throw new Error(outcome.hint);
  return outcome.answer;
}

function accessorOf(outcome: ReturnType<AuthReplica['authenticate']>): string {
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return outcome.caller.accessor;
}

interface Powers {
  readonly entersAs: 'caller' | string;
  readonly sign: boolean;
  readonly list: boolean;
  readonly management: boolean;
}

function powers({ authenticate }: AuthReplica, token: string): Powers {
  const outcome = authenticate(token);
  if (outcome.kind === 'refused') return { entersAs: outcome.reason, sign: false, list: false, management: false };
  const { access, management } = outcome.caller;
  const may = (request: Parameters<typeof evaluate>[1]) => evaluate(access, request).allowed;
  return { entersAs: 'caller', sign: may(SIGN), list: may({ scope: 'list_keys' }), management };
}

const NOTHING = { sign: false, list: false, management: false };

/** A change of an honest replica elsewhere, so that running ones read everything again. */
async function honestChange(): Promise<void> {
  const { auth } = await openAuthReplica(table);
  const outcome = await createPolicy(auth, root, { name: `tick-${auth.revision}`, rules: [{ effect: 'deny' }] });
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
}

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
  test('counts as missing when a replica starts: logged, counted, and nobody has more than before', async () => {
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

  test('counts as missing when a running replica reads the rows again', async () => {
    const running = await openAuthReplica(table);
    const before = [client, revoked, manager].map(({ token }) => powers(running, token));
    await attack();
    await honestChange();
    running.clock.advance(LOOK_AGAIN_SECONDS);
    await running.auth.refresh();
    expect(reasonsLogged(running).sort()).toEqual(logged().toSorted());
    for (const [index, { token }] of [client, revoked, manager].entries()) {
      expect(powers(running, token)).toMatchObject(loses().includes(token) ? NOTHING : (before[index] ?? NOTHING));
    }
  });
});

describe('what an administrator does about rows that are hidden', () => {
  test('a token whose row is gone can be revoked, and is not revived by putting the row back', async () => {
    const row = await table.row(`TOKEN#${client.accessor}`);
    await table.deleteRow(row.pk);
    const replica = await openAuthReplica(table);
    expect(await revokeToken(replica.auth, root, client.accessor)).toMatchObject({ kind: 'done' });
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), client.token).entersAs).toBe('invalid_token');
  });

  test('a policy whose row is gone can be deleted once nothing visible is bound to it, or be made anew', async () => {
    const row = await table.row('POLICY#signer');
    await table.deleteRow(row.pk);
    const replica = await openAuthReplica(table);
    expect(await deletePolicy(replica.auth, root, 'signer')).toMatchObject({ reason: 'policy_in_use' });
    const rules = [{ effect: 'allow', scopes: ['list_keys'] }] as const;
    expect(await createPolicy(replica.auth, root, { name: 'signer', rules })).toMatchObject({ kind: 'done' });
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), client.token)).toMatchObject({ sign: false, list: false });
  });

  test('a deny policy that was deleted while its token was hidden denies that token everything', async () => {
    const row = await table.row(`TOKEN#${client.accessor}`);
    await table.deleteRow(row.pk);
    const replica = await openAuthReplica(table);
    expect(await deletePolicy(replica.auth, root, 'signer')).toMatchObject({ kind: 'done' });
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), client.token)).toEqual({ ...NOTHING, entersAs: 'caller' });
  });
});

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

  test.each(HEADS)(
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

  test.each(HEADS)('%s: changes are refused with 503 and nothing is written', async (_what, attack) => {
    const running = await openAuthReplica(table);
    await attack();
    const rows = await table.rows();
    await expect(revokeToken(running.auth, root, client.accessor)).rejects.toMatchObject({ reason: 'state_stale' });
    expect(await table.rows()).toEqual(rows);
  });

  test.each(HEADS.filter(([, , problem]) => problem !== 'rolled_back'))(
    '%s: a replica that starts on it does not start',
    async (_what, attack, problem) => {
      await attack();
      await expect(openAuthReplica(table)).rejects.toMatchObject({ problem });
    },
  );

  test('put right again, it is believed again', async () => {
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

  test('a table that went back and took another way is not followed at the same revision', async () => {
    const running = await openAuthReplica(table);
    const current = await table.head();
    await table.putHead(oldHead);
    const fresh = await openAuthReplica(table); // it cannot know better
    while (fresh.auth.revision < current.revision) {
      await createPolicy(fresh.auth, root, { name: `fork-${fresh.auth.revision}`, rules: [{ effect: 'allow' }] });
    }
    await expect(running.auth.refresh()).rejects.toMatchObject({ problem: 'rolled_back' });
  });

  test('rows of two ways that the table took cannot be mixed', async () => {
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

describe('rows of other versions', () => {
  // Written by the version before rules knew of payments, with the row key of these tests.
  const CONTENT =
    '{"version":1,"commit":"AAAAAAAAAAAAAAAA","created_at":"2026-01-01T00:00:00.000Z","updated_at":"2026-01-01T00:00:00.000Z",' +
    `"rules":[{"effect":"allow","scopes":["sign","public_keys"],"keys":["0x${'ab'.repeat(48)}"]},` +
    '{"effect":"deny","operations":["VOLUNTARY_EXIT"]}]}';
  const MAC = Buffer.from('99c2a1848e1a1f22b3ca5ece56f6afc888637cd4ebb061a39ac0899f3bd154fe', 'hex');
  const COMMIT = { revision: 7, id: 'AAAAAAAAAAAAAAAA' };
  const AT = { createdAt: new Date(START).toISOString(), updatedAt: new Date(START).toISOString() };
  const KEY = `0x${'ab'.repeat(48)}`;

  test('an earlier row verifies and means the same', () => {
    const row = verifyRow(testKeys().rows, { pk: 'POLICY#validator-client', revision: 7, content: CONTENT, mac: MAC });
    if (row?.row !== 'policy') throw new Error('the row is not believed');
    const may = (operation: Operation, publicKey = KEY) => {
      const payment = { feeRecipient: `0x${'aa'.repeat(20)}`, gasLimit: 2n ** 64n - 1n };
      return evaluate(row.access, { scope: 'sign', publicKey, operation, payment }).allowed;
    };
    expect(OPERATIONS.filter((operation) => may(operation))).toEqual(
      OPERATIONS.filter((operation) => operation !== 'VOLUNTARY_EXIT'),
    );
    expect(OPERATIONS.filter((operation) => may(operation, `0x${'cd'.repeat(48)}`))).toEqual([]);
    expect(policyRecord(row).rules).toEqual([
      { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY] },
      { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
    ]);
  });

  test('rules that say nothing of payments are written byte for byte as before', () => {
    const earlier = parsePolicyText(CONTENT);
    if (earlier === undefined) throw new Error('the content is not understood');
    const row = makeRow(testKeys().rows, 'POLICY#validator-client', COMMIT, policyFields(earlier));
    expect(row).toEqual({ pk: 'POLICY#validator-client', revision: 7, content: CONTENT, mac: MAC });
  });

  test('fee recipients and gas limits are stored and read again', () => {
    const rules: Rule[] = [{ effect: 'allow', fee_recipients: [`0x${'aa'.repeat(20)}`], max_gas_limit: 60_000_000 }];
    const row = makeRow(testKeys().rows, 'POLICY#p', COMMIT, policyFields({ ...AT, rules }));
    expect(verifyRow(testKeys().rows, row)).toMatchObject({ name: 'p', rules });
  });

  test('a rule with a member of a later version makes its row missing: it is never read without the member', () => {
    const { created_at, updated_at } = ALLOW_ALL;
    const fields = { created_at, updated_at, rules: [{ effect: 'allow', scopes: ['sign'], max_blobs: 6 }] };
    expect(verifyRow(testKeys().rows, makeRow(testKeys().rows, 'POLICY#p', COMMIT, fields))).toBeUndefined();
  });
});

async function recreate(): Promise<string> {
  const token = createToken('management');
  const head = await table.head();
  const { changes, head: next } = replaceRootToken(testKeys(), head, token, START);
  expect(await table.state.commit(head.revision, changes, next)).toBe('committed');
  return token.toString('ascii');
}

test('the manifest of as many rows as there may be, with the longest names, fits one item', () => {
  const code = 'A'.repeat(22);
  const tokens = Array.from({ length: MAX_TOKENS }, (_, index) => [
    `TOKEN#acc_${String(index).padStart(32, '0')}`,
    code,
  ]);
  const policies = Array.from({ length: MAX_POLICIES }, (_, index) => [
    `POLICY#${String(index).padStart(64, 'p')}`,
    code,
  ]);
  const rows = new Map([...tokens, ...policies] as [string, string][]);
  const head = makeHead(testKeys().rows, newCommit(Number.MAX_SAFE_INTEGER), { root: null, rows });
  expect(Buffer.byteLength(head.manifest)).toBeLessThan(MAX_MANIFEST_BYTES);
  expect(openHead(testKeys().rows, head)?.rows).toEqual(rows);
});

describe('a new root token', () => {
  test('replaces the earlier one and leaves everything else, also on a running replica', async () => {
    const running = await openAuthReplica(table);
    const before = [client, manager].map(({ token }) => powers(running, token));
    const token = await recreate();
    await running.auth.refresh();
    expect(powers(running, table.rootToken).entersAs).toBe('invalid_token');
    expect(powers(running, token)).toMatchObject({ entersAs: 'caller', management: true });
    expect([client, manager].map(({ token: other }) => powers(running, other))).toEqual(before);
  });

  test('an earlier one that was hidden meanwhile does not come back', async () => {
    const row = await table.row(`TOKEN#${root}`);
    await table.deleteRow(row.pk);
    await recreate();
    await table.putRow(row);
    expect(powers(await openAuthReplica(table), table.rootToken).entersAs).toBe('invalid_token');
  });

  test('beside a head that does not verify: nothing but the new root token counts', async () => {
    const head = await table.head();
    await table.putHead({ ...head, manifest: oldHead.manifest });
    const token = await recreate();
    const fresh = await openAuthReplica(table);
    expect(powers(fresh, token)).toMatchObject({ entersAs: 'caller', management: true });
    for (const { token: old } of [client, manager, { token: table.rootToken }]) {
      expect(powers(fresh, old).entersAs).toBe('invalid_token');
    }
  });

  test('a revision that nothing can follow stops it and says what to do', async () => {
    const head = { ...(await table.head()), revision: Number.MAX_SAFE_INTEGER };
    expect(() => replaceRootToken(testKeys(), head, createToken('management'), START)).toThrow(
      /AUTH_REVISION was altered: delete the row/,
    );
  });
});
