// The real program under the policies that `strongroom setup` prints, in every phase of its life: what is not granted
// is refused, as AWS would, so what runs is granted; and what no phase has used is not granted.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { CUSTODY_REGION, type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { killChildren, type RunningSigner, runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import type { Phase, PolicyDocument } from '../../setup/policy-document.ts';
import { TABLE_ACTIONS, TABLES, type TableKind } from '../../setup/table-permissions.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { ACCOUNT, type GuardedAws, SIGNER, startGuardedAws } from '../support/guarded-aws.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { presentSlot } from '../support/present.ts';
import { block, call, signCall } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

/** A slot after the jump of a start has to come. */
const WAIT = { timeout: LONGEST_WAIT_MS, interval: 1000 };

let world: CustodyWorld;
let aws: GuardedAws;
let folder: string;
let names: Readonly<Record<TableKind, string>>;
let ceremony: CeremonyBlock;
const used: Record<Phase, ReadonlySet<string>> = {
  'first-boot': new Set(),
  running: new Set(),
  rotation: new Set(),
};

beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-permissions-'));
  const state = await world.createTable();
  names = { state, keys: `${state}-keys`, slashing: `${state}-slashing` };
  await world.dynamodb.createTable(keyTableDefinition(names.keys));
  ceremony = world.createCeremony();
  aws = await startGuardedAws({
    region: CUSTODY_REGION,
    dynamodb: world.dynamodb.endpoint,
    kms: world.kms.endpoint,
  });
});
afterAll(async () => {
  await killChildren();
  await aws?.close();
  await world?.close();
  rmSync(folder, { recursive: true, force: true });
});

const ENABLED = { enabled: true };

function config(): Record<string, unknown> {
  return {
    ...world.configuration(names.state, ceremony),
    signer_state: { backend: 'dynamodb', table: names.state, deployment_id: 'a-deployment' },
    anti_slashing: { backend: 'dynamodb', table: names.slashing },
    key_sources: { dynamodb: { table: names.keys } },
    http: { key_manager_api: ENABLED },
    chamber: { keys: { generate_keys: ENABLED, import: ENABLED, lifecycle: ENABLED } },
  };
}

/** By the arguments and the configuration. */
const documents = new Map<string, PolicyDocument>();

async function printed(...args: string[]): Promise<PolicyDocument> {
  const file = join(folder, 'strongroom.yaml');
  const text = stringify(config(), { aliasDuplicateObjects: false });
  writeFileSync(file, text);
  const asked = [...args, text].join('\n');
  const document = documents.get(asked) ?? (await print(args, file));
  documents.set(asked, document);
  return document;
}

async function print(args: readonly string[], file: string): Promise<PolicyDocument> {
  const { code, stdout, stderr } = await runStrongroom(['setup', ...args, '-c', file]);
  const said = stderr.replace(/^strongroom setup kms-policy: this policy is of one key: .*\n$/, '');
  expect({ code, said }).toEqual({ code: 0, said: '' });
  return JSON.parse(stdout) as PolicyDocument;
}

const HOME = ['--account', ACCOUNT, '--region', CUSTODY_REGION];

/** From now on the account has what is printed for this phase. */
async function enter(phase: Phase): Promise<void> {
  const administrator = `arn:aws:iam::${ACCOUNT}:role/custody-admin`;
  const [role, key, slashing] = await Promise.all([
    printed('iam', '--for', 'signer', '--phase', phase, ...HOME),
    printed('kms-policy', '--administrator', administrator, '--signer', SIGNER, '--phase', phase),
    printed('iam', '--for', 'table', '--table', 'slashing', ...HOME),
  ]);
  aws.use({ role, key, tables: { [names.slashing]: slashing } });
}

function leave(phase: Phase): readonly string[] {
  used[phase] = new Set(aws.used);
  return [...aws.refused];
}

const start = (): Promise<RunningSigner> => startSigner({ config: config(), env: world.environment(aws.endpoints) });

it('a first boot needs no more than its policy grants', async () => {
  await enter('first-boot');
  const signer = await start();
  await signer.stop();
  expect(leave('first-boot')).toEqual([]);
});

it('a running signer needs no more than its policy grants, whatever it is asked for', async () => {
  await enter('running');
  const signer = await start();
  const token = await world.rootToken(names.state);
  const ask = (path: string, body?: unknown, method?: string) =>
    call(`${signer.url}${path}`, { token, body, ...(method === undefined ? {} : { method }) });

  const rules = [{ effect: 'allow' }];
  expect((await ask('/api/v1/auth/policies', { name: 'all', rules })).status).toBe(201);
  const made = await ask('/api/v1/auth/tokens', { policies: ['all'] });
  const client = { token: String(made.json['token']) };

  const generated = await call(`${signer.url}/api/v1/chamber/keys/generate-keys`, { ...client, body: { count: 3 } });
  const keys = (generated.json['keys'] as readonly { readonly pubkey: string }[]).map(({ pubkey }) => pubkey);
  // The first records are a transaction each, the next ones share a request of statements.
  let last = 0;
  for (let round = 0; round < sized(4, 6); round += 1) {
    await vi.waitFor(async () => {
      const slot = presentSlot();
      expect(slot).toBeGreaterThan(last);
      const answers = await Promise.all(keys.map((key) => signCall(signer.url, key, block({ slot }), client)));
      expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 200));
      last = slot;
    }, WAIT);
  }

  const change = (method: string, body: object) =>
    call(`${signer.url}/api/v1/chamber/keys`, { ...client, body, method });
  expect((await change('PATCH', { keys: [{ pubkey: keys[0], status: 'inactive' }] })).status).toBe(200);
  expect((await change('DELETE', { pubkeys: [keys[1]] })).json['data']).toMatchObject([{ status: 'deleted' }]);
  expect((await ask('/api/v1/chamber/status')).json).toMatchObject({ custody: { keys_reachable: 3 } });
  const accessor = String(made.json['accessor']);
  expect((await ask(`/api/v1/auth/tokens/${accessor}`, undefined, 'DELETE')).status).toBeLessThan(300);
  expect((await ask('/api/v1/chamber/seal', { reason: 'drill' })).status).toBe(200);
  await signer.stop();
  expect(leave('running')).toEqual([]);
});

it('what is printed for a recovery deletes the latch, and no other row', async () => {
  const {
    Statement: [statement],
  } = await printed('iam', '--for', 'recovery', ...HOME);
  expect(statement).toMatchObject({
    Action: ['dynamodb:GetItem', 'dynamodb:DeleteItem'],
    Resource: `arn:aws:dynamodb:${CUSTODY_REGION}:${ACCOUNT}:table/${names.state}`,
    Condition: {
      'ForAllValues:StringEquals': { 'dynamodb:LeadingKeys': ['SEAL_OVERRIDE', 'ROOT_TOKEN_BOOTSTRAP'] },
      Null: { 'dynamodb:LeadingKeys': 'false' },
    },
  });
  await world.deleteRow(names.state, 'SEAL_OVERRIDE');
});

it('a rotation needs no more than its policy grants, and may encrypt', async () => {
  const old = ceremony;
  ceremony = { ...world.createCeremony(), generation: 2, retired_kms_keys: old.kms_keys };
  await enter('running');
  await expect(start()).rejects.toThrow(/access denied/); // kms:Encrypt is not there
  expect([...aws.refused]).toEqual(['kms:Encrypt']);
  await enter('rotation');
  const signer = await start();
  await signer.logged('rotated: the master key is wrapped again', { generation: 2, was: 1 });
  await signer.stop();
  expect(leave('rotation')).toEqual([]);
});

it('a running signer does not initialise a table that has lost its rows', async () => {
  await enter('running');
  for (const row of ['MASTER_KEY', 'ROOT_TOKEN_BOOTSTRAP', 'AUTH_REVISION']) await world.deleteRow(names.state, row);
  await expect(start()).rejects.toThrow();
  expect(await world.row(names.state, 'MASTER_KEY')).toBeUndefined();
});

it('what is granted is used: each action of each table, in a phase that has it', () => {
  const unused = TABLES.flatMap((table) =>
    TABLE_ACTIONS[table]
      .filter(({ action, phases }) => !phases.some((phase) => used[phase].has(`${names[table]} dynamodb:${action}`)))
      .map(({ action }) => `${table} ${action}`),
  );
  expect(unused).toEqual([]);
  expect([...used.running]).toEqual(expect.arrayContaining(['kms:Decrypt', 'kms:DescribeKey']));
  expect([...used['first-boot']]).toContain('kms:Encrypt');
});

it('what only the first boot has is used by it', () => {
  const only = TABLE_ACTIONS.state.filter(({ phases }) => phases.length === 1);
  expect(only.map(({ action }) => action)).toEqual(['Scan', 'ConditionCheckItem']);
  for (const { action } of only) expect([...used['first-boot']]).toContain(`${names.state} dynamodb:${action}`);
});

it('setup tables needs what is printed for it, all of it', async () => {
  const before = names;
  names = { state: 'fresh', keys: 'fresh-keys', slashing: 'fresh-slashing' };
  const role = await printed('iam', '--for', 'setup', ...HOME);
  aws.use({ role });
  const env = world.environment(aws.endpoints);
  for (const outcome of ['created', 'exists']) {
    const { stdout } = await runStrongroom(['setup', 'tables', '-c', join(folder, 'strongroom.yaml')], { env });
    expect(stdout).toBe(`fresh: ${outcome}\nfresh-keys: ${outcome}\nfresh-slashing: ${outcome}\n`);
  }
  expect([...aws.refused]).toEqual([]);
  const granted = role.Statement.flatMap(({ Action }) => Action).map((action) => `fresh ${action}`);
  expect([...aws.used]).toEqual(expect.arrayContaining(granted));
  names = before;
});

it('a role that the tables keep out is refused, whatever its own policy says', async () => {
  await enter('running');
  const role = await printed('iam', '--for', 'signer', ...HOME);
  const state = await printed('iam', '--for', 'table', '--table', 'state', '--keep-out', SIGNER, ...HOME);
  aws.use({ role, tables: { [names.state]: state } });
  await expect(start()).rejects.toThrow(/cannot start/);
  expect([...aws.refused]).toContain(`${names.state} dynamodb:GetItem`);
});
