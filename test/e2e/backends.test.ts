// Each slashing backend behind the real program, and the records carried from one to another by interchange file.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { startPostgres } from '../support/postgres.ts';
import { attestation, batchCall, block, call, MAINNET_ROOT, rootOf, signCall } from '../support/requests.ts';
import { IS_WHOLE, sized, someOf } from '../support/scale.ts';

const BACKENDS = ['sqlite', 'postgres', 'dynamodb'] as const;
type Backend = (typeof BACKENDS)[number];

/** At the small size each backend gives and takes once. */
function carriedTo(from: Backend): readonly Backend[] {
  return IS_WHOLE ? BACKENDS : BACKENDS.filter((_, index) => BACKENDS.at(index - 1) === from);
}

let postgres: Awaited<ReturnType<typeof startPostgres>>;
let dynamodb: Awaited<ReturnType<typeof startDynamoDB>>;
let stores = 0;

beforeAll(async () => {
  [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
});
afterAll(async () => {
  await Promise.all([postgres.close(), dynamodb.close()]);
});

interface Store {
  readonly deployment: Deployment;
  readonly env: Readonly<Record<string, string>>;
}

async function freshStore(backend: Backend): Promise<Store> {
  stores += 1;
  const name = `slashing_${stores}`;
  if (backend === 'sqlite') return { deployment: deploy(2), env: {} };
  if (backend === 'postgres') {
    const url = postgres.url(await postgres.createDatabase());
    return { deployment: deploy(2, { anti_slashing: { backend } }), env: { SVC_ANTI_SLASHING__URL: url } };
  }
  await dynamodb.createTable(tableDefinition(name));
  const env = {
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'TEST',
    AWS_SECRET_ACCESS_KEY: 'TEST',
  };
  return { deployment: deploy(2, { anti_slashing: { backend, table: name } }), env };
}

const METADATA = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
const SIGNED = [
  block({ slot: 1000 }),
  attestation({ source: 10, target: 11 }),
  attestation({ source: 11, target: 15 }),
];
const SLASHABLE = [
  block({ slot: 1000, body: rootOf(9) }),
  attestation({ source: 10, target: 11, head: rootOf(9) }),
  attestation({ source: 11, target: 15, head: rootOf(9) }),
  attestation({ source: 10, target: 16 }),
  attestation({ source: 12, target: 14 }),
];

async function signEach(store: Store, bodies: readonly object[]): Promise<number[]> {
  const signer = await store.deployment.start({ env: store.env });
  const statuses: number[] = [];
  for (const body of bodies) {
    statuses.push((await signCall(signer.url, store.deployment.keys[0]?.publicKey ?? '', body)).status);
  }
  await signer.stop();
  return statuses;
}

/** For commands before the first start. */
function writeConfiguration({ deployment: { folder, config } }: Store): void {
  writeFileSync(join(folder, 'strongroom.yaml'), stringify(config));
}

function slashing(store: Store, ...args: string[]): ReturnType<typeof runStrongroom> {
  const config = join(store.deployment.folder, 'strongroom.yaml');
  return runStrongroom(['slashing', ...args, '-c', config], { env: store.env });
}

describe.each(BACKENDS)('records made on %s', (from) => {
  it('refuse the same slashable messages on every backend they are carried to', async () => {
    const source = await freshStore(from);
    expect(await signEach(source, SIGNED)).toEqual([200, 200, 200]);
    expect(await signEach(source, SLASHABLE)).toEqual(SLASHABLE.map(() => 412));
    const file = join(source.deployment.folder, 'interchange.json');
    expect((await slashing(source, 'export', '--output', file)).code).toBe(0);

    for (const to of carriedTo(from)) {
      const target = await freshStore(to);
      writeConfiguration(target);
      const imported = await slashing(target, 'import', file);
      expect(imported).toMatchObject({ code: 0, stdout: expect.stringMatching(/^keys: 1\n/) });
      const asked = [...SLASHABLE, attestation({ source: 15, target: 16 })];
      expect(await signEach(target, asked), `${from} to ${to}`).toEqual([...SLASHABLE.map(() => 412), 200]);
      const again = await slashing(target, 'export', '--pubkeys', source.deployment.keys[1]?.publicKey ?? '');
      expect(JSON.parse(again.stdout)).toMatchObject({ data: [] });
    }
  });

  it('are made for the keys of a batch, each for itself', async () => {
    const store = await freshStore(from);
    const some = store.deployment.keys.map(({ publicKey }) => publicKey);
    const signer = await store.deployment.start({ env: store.env });
    const ask = async (body: object): Promise<unknown[]> => {
      const { text } = await batchCall(signer.url, some, body);
      const results: { signature?: string; error?: { code: number } }[] = JSON.parse(text);
      return results.map(({ signature, error }) => (signature === undefined ? error?.code : 200));
    };
    expect((await signCall(signer.url, some[1] ?? '', attestation({ source: 10, target: 11 }))).status).toBe(200);
    expect(await ask(attestation({ source: 10, target: 11, head: rootOf(9) }))).toEqual([200, 412]);
    expect(await ask(attestation({ source: 11, target: 12 }))).toEqual([200, 200]);
    expect(await ask(attestation({ source: 10, target: 13 }))).toEqual([412, 412]);
    await signer.stop();
  });
});

describe.each(someOf(BACKENDS, 1))('records made on %s', (from) => {
  it('older than a minimal file leave no gap when the file is imported as one', async () => {
    const store = await freshStore(from);
    expect(await signEach(store, SIGNED)).toEqual([200, 200, 200]);
    const pubkey = store.deployment.keys[0]?.publicKey ?? '';
    const newer = { signed_blocks: [], signed_attestations: [{ source_epoch: '149', target_epoch: '150' }] };
    const file = join(store.deployment.folder, 'newer.json');
    writeFileSync(file, JSON.stringify({ metadata: METADATA, data: [{ pubkey, ...newer }] }));
    expect(await slashing(store, 'import', file, '--as-minimal')).toMatchObject({ code: 0 });
    const [inTheGap, beyond] = [attestation({ source: 110, target: 120 }), attestation({ source: 149, target: 151 })];
    expect(await signEach(store, [inTheGap, beyond])).toEqual([412, 200]);
    expect(await slashing(store, 'export', '--as-minimal')).toMatchObject({ code: 1 });
  });

  it('that contradict a file are named with it, and the exit code says so', async () => {
    const store = await freshStore(from);
    writeConfiguration(store);
    const pubkey = store.deployment.keys[0]?.publicKey ?? '';
    const data = [rootOf(1), rootOf(2)].map((signing_root) => ({
      pubkey,
      signed_blocks: [{ slot: '4', signing_root }],
      signed_attestations: [],
    }));
    const file = join(store.deployment.folder, 'contradicting.json');
    writeFileSync(file, JSON.stringify({ metadata: METADATA, data }));
    expect(await slashing(store, 'import', file)).toMatchObject({
      code: 9,
      stdout: expect.stringMatching(/^conflicts: 1$/m),
      stderr: expect.stringContaining(`  ${pubkey} block at slot 4\n`),
    });
  });

  it('go out and in over HTTP as well, with a scope of their own', async () => {
    const [source, target] = [await freshStore(from), await freshStore(from)];
    const access = { policies: [{ name: 'all', rules: [{ effect: 'allow' }] }], anonymous: { policies: ['all'] } };
    const options = { config: { static_auth: access } };
    const key = source.deployment.keys[0]?.publicKey ?? '';
    const one = await source.deployment.start({ ...options, env: source.env });
    for (const body of SIGNED) expect((await signCall(one.url, key, body, { token: null })).status).toBe(200);
    const route = '/api/v1/chamber/slashing-protection';
    const exported = await call(`${one.url}${route}`, { token: null });
    expect(exported.json).toMatchObject({ metadata: { interchange_format_version: '5' }, data: [{ pubkey: key }] });

    const other = await target.deployment.start({ ...options, env: target.env });
    const summary = await call(`${other.url}${route}`, { token: null, body: exported.text });
    expect(summary.json).toMatchObject({ validators: 1, already_present: 0, conflicts: 0 });
    for (const body of SLASHABLE) expect((await signCall(other.url, key, body, { token: null })).status).toBe(412);

    const headers = { 'x-request-id': 'broken-file' };
    const broken = await call(`${other.url}${route}`, {
      token: null,
      headers,
      body: exported.text.replace('"5"', '"4"'),
    });
    await other.logged('request', { request_id: 'broken-file', reason: 'malformed_body' });
    expect(broken.json).toMatchObject({ code: 400, reason: 'malformed_body' });
    expect(broken.json['message']).toMatch(/nothing was imported: metadata\.interchange_format_version/);
    await Promise.all([one.stop(), other.stop()]);
  });
});

describe('records over HTTP', () => {
  it('are refused without the scope, and an import that names a key out of reach merges nothing', async () => {
    const deployment = deploy(2);
    const [mine, other] = deployment.keys.map(({ publicKey }) => publicKey);
    const rules = [{ effect: 'allow', scopes: ['slashing_protection'], keys: [mine] }];
    const token = 'sr_client_TEST_TOKEN_for_records_of_one_key_0001';
    const signing = 'sr_client_TEST_TOKEN_for_signing_only_000000001';
    const signer = await deployment.start({
      config: {
        static_auth: {
          policies: [
            { name: 'records', rules },
            { name: 'sign', rules: [{ effect: 'allow', scopes: ['sign'] }] },
          ],
          tokens: [
            { secret: token, policies: ['records'] },
            { secret: signing, policies: ['sign'] },
          ],
        },
      },
    });
    const url = `${signer.url}/api/v1/chamber/slashing-protection`;
    expect((await call(url, { token: signing })).status).toBe(403);
    for (const key of [mine, other]) await signCall(signer.url, key ?? '', attestation(), { token: signing });
    const visible = await call(url, { token });
    expect((visible.json['data'] as { pubkey: string }[]).map(({ pubkey }) => pubkey)).toEqual([mine]);
    expect((await call(`${url}?pubkeys=${other}`, { token })).status).toBe(403);

    const vote = { source_epoch: '100', target_epoch: '101' };
    const data = [mine, other].map((pubkey) => ({ pubkey, signed_blocks: [], signed_attestations: [vote] }));
    const refused = await call(url, { token, body: { ...visible.json, data } });
    expect(refused.json).toMatchObject({ code: 403, reason: 'denied' });
    const after = await signCall(signer.url, mine ?? '', attestation({ source: 11, target: 12 }), { token: signing });
    expect(after.status).toBe(200); // the vote of epoch 101 was not merged
    await signer.stop();
  });
});

describe('two signers on one PostgreSQL', () => {
  it('64 concurrent conflicting requests over both: one signature on every round', async () => {
    const store = await freshStore('postgres');
    const other = deploy(2, { anti_slashing: { backend: 'postgres' } });
    const signers = await Promise.all([store.deployment, other].map((one) => one.start({ env: store.env })));
    const key = store.deployment.keys[0]?.publicKey ?? '';
    for (let round = 0; round < sized(2, 5); round += 1) {
      const answers = await Promise.all(
        Array.from({ length: 64 }, (_, head) =>
          signCall(
            signers[head % 2]?.url ?? '',
            key,
            attestation({ source: 20 + round, target: 21 + round, head: rootOf(head) }),
          ),
        ),
      );
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
      expect(answers.filter(({ status }) => status === 412)).toHaveLength(63);
    }
    await Promise.all(signers.map((signer) => signer.stop()));
  });

  it('a request that cannot be finished in time is 503 request_timeout, and a database that comes back is used again', async () => {
    const store = await freshStore('postgres');
    const key = store.deployment.keys[0]?.publicKey ?? '';
    const signer = await store.deployment.start({
      env: store.env,
      config: { server: { request_timeout_seconds: 1, health_check: { poll_interval_seconds: 1 } } },
    });
    // A second is little for a first connection on a busy machine: then it is asked again.
    const vote = async (target: number) => (await signCall(signer.url, key, attestation({ source: 1, target }))).status;
    await expect.poll(() => vote(2)).toBe(200);
    await postgres.stop('fast');
    const down = await signCall(signer.url, key, attestation({ source: 1, target: 3 }));
    expect(down.status).toBe(503);
    expect(['slashing_unavailable', 'request_timeout']).toContain(down.json['reason']);
    expect((await call(`${signer.url}/healthcheck`, { token: null })).json['outcome']).toBe('DOWN');
    await postgres.start();
    await signer.logged('slashing protection is available again');
    await expect.poll(() => vote(3)).toBe(200);
    await signer.stop();
  });
});
