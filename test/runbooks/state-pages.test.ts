// The sections about tables, tokens and keys of docs/runbooks/slashing-database.md, docs/runbooks/store-unavailable.md
// and docs/runbooks/key-compromise.md: a replica on another store, tables that answer nothing, a custody key that was
// disabled, tokens that were stolen, a key that has to go at once, a state that was put back.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { FAULTS } from '../support/fault-proxy.ts';
import type { InterchangeFile } from '../support/interchange.ts';
import { tellsOneStory } from '../support/skip.ts';
import { ask } from './asking.ts';
import { after } from './follow.ts';
import type { Block } from './page.ts';
import { rehearseSection } from './rehearse.ts';
import { presentEpoch } from './service-world.ts';
import { type StatefulWorld, startStatefulRunbooks } from './stateful-world.ts';

const DATABASE_PAGE = 'docs/runbooks/slashing-database.md';
const KEY_PAGE = 'docs/runbooks/key-compromise.md';
const STORE_PAGE = 'docs/runbooks/store-unavailable.md';
/** Values that the pages ask for, and these sections do not need. */
const UNUSED = {
  ...{ KEY: '', KEY_FILE: '', KEY_ADMIN: '@key-admin-token', STOLEN: '', UNKNOWN_POLICY: '', CLIENTS: '' },
  ...{ RETIRED: '', INTERCHANGE: '', DATABASE: '', OLD_DATABASE: '', OLD_SERVER: '', DATABASE_SERVER: '' },
};

let world: StatefulWorld;
/** The token of the validator client, after the first was stolen. */
let client: string;
const keyAt = (index: number): string => world.keys[index] ?? '';

tellsOneStory();

beforeAll(async () => {
  world = await startStatefulRunbooks({ slashing: 'dynamodb' });
  client = world.client.token;
});
afterAll(() => world?.close());

interface Around {
  readonly also?: (block: Block) => Promise<void>;
  readonly values?: Readonly<Record<string, string>>;
}

function follow(section: string, page: string, { also, values }: Around = {}) {
  const own = { ...UNUSED, CUSTODY_KEYS: world.arns.join(' '), ...values };
  return rehearseSection(
    page,
    section,
    { ...world, values: { ...world.values, ...own } },
    { before: after(world, also) },
  );
}

it('#unbound: a replica on another store signs nothing, until it has that of the fleet', async () => {
  const now = presentEpoch();
  const peer = await world.startPeer();
  try {
    const store = (table: string) => world.configure((all) => Object.assign(all['anti_slashing'] as object, { table }));
    await world.custody.dynamodb.createTable(tableDefinition('another'));
    store('another');
    await world.unit.stop();
    await world.unit.start();
    expect(await world.vote(keyAt(0), now)).toBe('slashing_unbound');
    await follow('unbound', DATABASE_PAGE, {
      values: { SIGNERS: `${world.address} ${world.peerAddress}` },
      also: async ({ commands }) => {
        if (commands.includes('systemctl restart')) store(`${world.table}-slashing`);
      },
    });
    const slot = await world.signs(keyAt(0));
    expect(await world.propose(keyAt(0), slot, { body: 9 })).toBe('double_block');
  } finally {
    await peer.stop();
  }
});

it('#state-table, #key-table, #dynamodb: the tables do not answer, and nothing has to be started again', async () => {
  const now = presentEpoch();
  world.tables.setRule(() => FAULTS.accessDenied);
  await expect.poll(() => world.vote(keyAt(0), now), { interval: 500 }).toBe('state_stale');
  const mend = async ({ commands }: Block): Promise<void> => {
    if (/^(?:until|failures)/.test(commands)) world.tables.setRule(undefined);
  };
  const pid = world.unit.signer?.pid;
  const found = await follow('state-table', STORE_PAGE, { also: mend });
  expect(found.map(({ output }) => output).join()).toContain('outcome="denied"');
  await world.signs(keyAt(0));

  for (const section of ['key-table', 'dynamodb']) {
    world.tables.setRule(() => FAULTS.accessDenied);
    await expect.poll(() => world.metric('svc_key_table_read_failures_total'), { interval: 500 }).toBeGreaterThan(0);
    await (section === 'key-table'
      ? follow('key-table', STORE_PAGE, { also: mend })
      : follow('dynamodb', STORE_PAGE, { also: mend }));
  }
  await world.signs(keyAt(0));
  expect(world.unit.signer?.pid).toBe(pid);
});

it('#custody-keys: one was disabled; the signer signs on, and its next start has all of them', async () => {
  const [arn = ''] = world.arns;
  world.custody.kms.setBehaviour(arn, 'disabled');
  const found = await follow('custody-keys', STORE_PAGE);
  expect(found.map(({ output }) => output).join()).toContain(`${arn} Disabled`);
  await world.unit.stop();
  await world.unit.start();
  await world.signs(keyAt(0));
});

const said = (blocks: Awaited<ReturnType<typeof follow>>): string => blocks.map(({ output }) => output).join('\n');

it('docs/runbooks/key-compromise.md#canary, #tokens: a thief tries keys with a token, which is taken from him', async () => {
  const now = presentEpoch();
  const thief = await world.createToken({ policies: ['validator-client'] });
  const options = { token: thief.token };
  await world.signs(keyAt(2), options);
  const found = await follow('canary', KEY_PAGE, { values: { KEY: keyAt(2), STOLEN: thief.accessor } });
  expect(said(found)).toContain(thief.accessor);
  expect(await world.vote(keyAt(2), now, options)).toBe('invalid_token');

  const values = { STOLEN: world.client.accessor, CLIENTS: '127.0.0.0/8' };
  expect(said(await follow('tokens', KEY_PAGE, { values }))).toMatch(/1 invalid_token /);
  expect(await world.vote(keyAt(0), now)).toBe('invalid_token');
  const fresh = readFileSync(join(world.etc, 'client-token'), 'utf8').trim();
  await world.signs(keyAt(0), { token: fresh });
  client = fresh;
});

it('docs/runbooks/key-compromise.md#management: what a stolen management token made goes with it', async () => {
  const thief = await world.createToken({ management: true });
  const asThief = (path: string, body: object) => ask(world.address, path, thief.token, body);
  expect((await asThief('/api/v1/auth/policies', { name: 'backdoor', rules: [{ effect: 'allow' }] })).status).toBe(201);
  const made = JSON.parse((await asThief('/api/v1/auth/tokens', { policies: ['backdoor'] })).text) as { token: string };
  await world.signs(keyAt(0), made);
  const found = await follow('management', KEY_PAGE, {
    values: { STOLEN: thief.accessor, UNKNOWN_POLICY: 'backdoor' },
  });
  expect(found.at(-1)?.output).not.toMatch(new RegExp(`backdoor|${thief.accessor}`));
  expect(await world.vote(keyAt(0), presentEpoch(), made)).toBe('invalid_token');
  expect((await asThief('/api/v1/auth/tokens', { management: true })).status).toBe(403);
});

it('docs/runbooks/key-compromise.md#validator-key: a key that has to go at once is gone, and its history is kept', async () => {
  const slot = await world.signs(keyAt(1), { token: client });
  await follow('validator-key', KEY_PAGE, {
    values: { KEY: keyAt(1), KEY_FILE: join(world.etc, 'keys/key-1.yaml') },
  });
  expect(await world.vote(keyAt(1), presentEpoch(), { token: client })).toBe('unknown_key');
  await world.signs(keyAt(0), { token: client });
  const history = JSON.parse(readFileSync(join(world.etc, 'history-of-the-key.json'), 'utf8')) as InterchangeFile;
  const [record] = history.data;
  expect(record?.pubkey).toBe(keyAt(1));
  expect(record?.signed_blocks.map((signed) => signed.slot)).toContain(String(slot));
});

it('docs/runbooks/key-compromise.md#state-table: a state that was put back revives no token', async () => {
  const now = presentEpoch();
  const revoked = await world.createToken({ policies: ['validator-client'] });
  const names = ['AUTH_REVISION', `TOKEN#${revoked.accessor}`];
  const rows = await Promise.all(names.map((pk) => world.custody.row(world.table, pk)));
  const path = `/api/v1/auth/tokens/${revoked.accessor}`;
  expect((await ask(world.address, path, world.root, undefined, 'DELETE')).status).toBe(204);
  for (const row of rows) if (row !== undefined) await world.custody.putRow(world.table, row);
  await expect.poll(() => world.metric('svc_auth_heads_rejected_total')).toBeGreaterThan(0);
  await expect.poll(() => world.vote(keyAt(0), now, { token: client })).toBe('state_stale');

  const found = await follow('state-table', KEY_PAGE);
  expect(said(found)).toContain('problem="rolled_back"');
  expect(await world.vote(keyAt(0), now, { token: revoked.token })).toBe('invalid_token');
  await world.signs(keyAt(0), { token: client });
});
