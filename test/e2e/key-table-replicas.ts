// Two real signers that share a state table and a key table, for all tests of a file, and requests to them. The keys
// here are TEST keys.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { type RunningSigner, startSigner } from '../../rehearsal/signer.ts';
import type { depositProblem } from '../../signer/keys/generation/deposit.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { type Answer, call, randaoReveal, signCall } from '../support/requests.ts';

export const ADDRESS = '0x52908400098527886e0f7030069857d2e4169ee7';
export const PASSWORD = 'TEST password';
const SCOPES = [
  'sign',
  'public_keys',
  'list_keys',
  'import_keystores',
  'delete_keys',
  'chamber_keys_generate',
  'chamber_keys_deposit_data',
  'chamber_keys_import',
  'chamber_keys_list',
  'chamber_keys_patch',
  'chamber_keys_delete',
];
/** For the other replica to see a change: its refresh interval is one second. */
export const WAIT = { timeout: LONGEST_WAIT_MS, interval: 100 };

export let world: CustodyWorld;
let folder: string;
export let replicas: readonly [RunningSigner, RunningSigner];
export const tokens = { full: '', blsOnly: '', listOnly: '', ofOneKey: '' };

beforeAll(async () => {
  world = await startCustody();
  folder = mkdtempSync(join(tmpdir(), 'strongroom-keys-'));
  const state = await world.createTable();
  await world.dynamodb.createTable(keyTableDefinition('keys'));
  const enabled = { enabled: true };
  const config = (name: string) => ({
    ...world.configuration(state, ceremony),
    key_sources: { dynamodb: { table: 'keys' } },
    http: { key_manager_api: enabled },
    chamber: {
      keys: {
        generate: { ...enabled, max_items_per_request: 4 },
        generate_keys: enabled,
        deposit_data: { ...enabled, allow_recompute: name === 'first' },
        import: enabled,
        lifecycle: enabled,
        backup: { recipients: [world.recipient] },
      },
    },
  });
  const ceremony = world.createCeremony();
  const env = world.environment();
  const first = await startSigner({ config: config('first'), env });
  replicas = [first, await startSigner({ config: config('second'), env })];
  const root = await world.rootToken(state);
  tokens.full = await createToken(root, 'full', SCOPES);
  tokens.blsOnly = await createToken(root, 'bls', ['chamber_keys_generate_bls']);
  tokens.listOnly = await createToken(root, 'list', ['chamber_keys_list', 'chamber_keys_deposit_data']);
  tokens.ofOneKey = await createToken(root, 'one', ['chamber_keys_generate_bls'], [`0x${'8f'.repeat(48)}`]);
});
afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica.stop()));
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

async function createToken(
  root: string,
  name: string,
  scopes: readonly string[],
  keys?: readonly string[],
): Promise<string> {
  const [first, second] = replicas;
  const policy = { name, rules: [{ effect: 'allow', scopes, ...(keys === undefined ? {} : { keys }) }] };
  await call(`${first.url}/api/v1/auth/policies`, { token: root, body: policy });
  const { json } = await call(`${first.url}/api/v1/auth/tokens`, { token: root, body: { policies: [name] } });
  const token = String(json['token']);
  await vi.waitFor(async () => {
    expect((await call(`${second.url}/api/v1/auth/tokens/lookup-self`, { token })).status).toBe(200);
  }, WAIT);
  return token;
}

export interface KeyResult {
  readonly pubkey: string;
  readonly status: string;
  readonly backup?: string;
  readonly deposit_data?: Parameters<typeof depositProblem>[0];
}

export function ask(
  replica: RunningSigner,
  path = '',
  body?: unknown,
  method?: string,
  token = tokens.full,
): Promise<Answer> {
  const options = { token, body, ...(method === undefined ? {} : { method }) };
  return call(`${replica.url}/api/v1/chamber/keys${path}`, options);
}

export const listed = ({ json }: Answer, member: 'data' | 'keys' = 'data') => json[member] as readonly KeyResult[];
export const sign = (replica: RunningSigner, publicKey: string, body: unknown = randaoReveal()): Promise<Answer> =>
  signCall(replica.url, publicKey, body, { token: tokens.full });

export async function generateOne(): Promise<string> {
  const answer = await ask(replicas[0], '/generate-keys', { count: 1 });
  expect(answer.status).toBe(201);
  return listed(answer, 'keys')[0]?.pubkey ?? '';
}

/** Until the replica answers a request to sign like this. */
export async function untilSigning(replica: RunningSigner, publicKey: string, status: number): Promise<void> {
  await vi.waitFor(async () => expect((await sign(replica, publicKey)).status).toBe(status), WAIT);
}
