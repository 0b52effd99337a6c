// Changes of keys on a real signer that is still reading its key files: nothing is answered that a file may make untrue
// a moment later, or after the next start. The keys here are TEST keys.

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { encryptKeystore, FULL_SCRYPT, publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { type Answer, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';
import { IS_WHOLE } from '../support/scale.ts';

const PASSWORD = 'TEST password';
const CHAMBER = '/api/v1/chamber/keys';
const KEY_MANAGER = '/eth/v1/keystores';
/**
 * Keystores of EIP-2335's own scrypt cost, of which the last one is asked about. Each is most of a second for a core:
 * the first requests come while they load, also on a busy machine. A few take as long when they are opened one by one.
 */
const SLOW_KEYSTORES = IS_WHOLE ? 16 : 6;
const LOADING = IS_WHOLE ? {} : { SVC_KEY_SOURCES__FILESYSTEM__KEYSTORE_LOAD_CONCURRENCY: '1' };
const OWN = testSecret(SLOW_KEYSTORES - 1);
const KEY = publicKeyOf(OWN);

const enabled = { enabled: true };
const scopes = [
  'sign',
  'public_keys',
  'list_keys',
  'import_keystores',
  'delete_keys',
  'chamber_keys_list',
  'chamber_keys_import',
  'chamber_keys_patch',
  'chamber_keys_delete',
];
const deployment = deploy(0, {
  http: { key_manager_api: enabled },
  chamber: { keys: { import: enabled, lifecycle: enabled } },
  static_auth: {
    policies: [{ name: 'full', rules: [{ effect: 'allow', scopes }] }],
    tokens: [{ secret: TEST_TOKEN, policies: ['full'] }],
  },
});

let signer: RunningSigner;
beforeAll(async () => {
  for (let number = 0; number < SLOW_KEYSTORES; number++) {
    writeKeystore(join(deployment.folder, 'keys'), `slow-${number}`, testSecret(number), PASSWORD, FULL_SCRYPT);
  }
  signer = await deployment.start({ waitFor: 'listening', env: LOADING });
});
afterAll(() => signer.stop());

const keystores = { keystores: [JSON.stringify(encryptKeystore(OWN, PASSWORD))], passwords: [PASSWORD] };
const ask = (path: string, method: string, body?: unknown): Promise<Answer> =>
  call(`${signer.url}${path}`, { method, body });
const REQUESTS = [
  [KEY_MANAGER, 'POST', keystores],
  [KEY_MANAGER, 'DELETE', { pubkeys: [KEY] }],
  [CHAMBER, 'POST', { ...keystores, storage: { persist: false } }],
  [CHAMBER, 'PATCH', { keys: [{ pubkey: KEY, status: 'inactive' }] }],
  [CHAMBER, 'DELETE', { pubkeys: [KEY] }],
] as const;
const statusOf = ({ json }: Answer) => (json['data'] as { status: string }[])[0]?.status;

it('import, PATCH and DELETE are 503 starting while key files load, and then true', async () => {
  const early = await Promise.all(REQUESTS.map(([path, method, body]) => ask(path, method, body)));
  for (const answer of early) {
    expect(answer).toMatchObject({ status: 503, json: { reason: 'starting' } });
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(answer.text).not.toContain('slashing_protection');
  }
  await signer.logged('ready');
  expect(signer.log.filter(({ msg }) => msg === 'request could not be served')).toHaveLength(1); // not one for each
  const late = await Promise.all(REQUESTS.map(([path, method, body]) => ask(path, method, body)));
  expect(late.map(statusOf)).toEqual(['duplicate', 'error', 'duplicate', 'error', 'error']);
  expect((await signCall(signer.url, KEY, randaoReveal())).status).toBe(200);
  expect((await ask(CHAMBER, 'GET')).json['keys']).toContainEqual(
    expect.objectContaining({ pubkey: KEY, source: 'filesystem', sources: ['filesystem'], loaded: true }),
  );
});

it('what was answered as deleted does not sign after a restart', async () => {
  const secret = testSecret(50);
  const body = { keystores: [JSON.stringify(encryptKeystore(secret, PASSWORD))], passwords: [PASSWORD] };
  expect(statusOf(await ask(KEY_MANAGER, 'POST', body))).toBe('imported');
  expect(statusOf(await ask(KEY_MANAGER, 'DELETE', { pubkeys: [publicKeyOf(secret)] }))).toBe('deleted');
  await signer.stop();
  // What only kept the first load busy.
  for (let number = 0; number < SLOW_KEYSTORES - 1; number++) {
    rmSync(join(deployment.folder, 'keys', `slow-${number}.yaml`));
  }
  signer = await deployment.start({ waitFor: 'listening' });
  await signer.logged('ready');
  expect((await signCall(signer.url, publicKeyOf(secret), randaoReveal())).status).toBe(404);
  expect((await signCall(signer.url, KEY, randaoReveal())).status).toBe(200);
});
