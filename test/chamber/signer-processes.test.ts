// Replicas as real processes on one state table: first boot all at once, break-glass, the latch across restarts,
// recovery, and what a start that cannot be says on stderr.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { CeremonyBlock } from '../../ceremony/definition.ts';
import { type CustodyWorld, startCustody } from '../../rehearsal/custody.ts';
import { killChildren, type RunningSigner, type SignerOptions, startSigner } from '../../rehearsal/signer.ts';
import { chamberStatusSchema, sealAnswerSchema } from '../../signer/api/chamber.ts';
import { healthSchema } from '../../signer/api/health.ts';
import { expectNoList } from '../support/no-list.ts';
import { attestation, call, signCall, testKey } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

const REPLICAS = sized(3, 8);

let world: CustodyWorld;
let folder: string;

beforeAll(async () => {
  world = await startCustody();
});
afterAll(() => world.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-chamber-'));
  mkdirSync(join(folder, 'keys'));
  writeFileSync(join(folder, 'keys/key.yaml'), `type: file-raw\nprivateKey: "${testKey(0).secret}"\n`);
});
afterEach(async () => {
  await killChildren(); // also those that had not come up when the test failed
  rmSync(folder, { recursive: true, force: true });
});

async function start(
  table: string,
  ceremony: CeremonyBlock,
  waitFor: NonNullable<SignerOptions['waitFor']> = 'ready',
): Promise<RunningSigner> {
  return startSigner({
    config: {
      ...world.configuration(table, ceremony),
      key_sources: { filesystem: { paths: [join(folder, 'keys')] } },
    },
    env: world.environment(),
    waitFor,
  });
}

const initialised = ({ log }: RunningSigner): boolean => log.some(({ msg }) => String(msg).startsWith('initialised'));

describe('first boot', () => {
  it(`of ${REPLICAS} processes at once one initialises, all unseal, and one root token works on each`, async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => start(table, ceremony)));
    expect(replicas.filter(initialised)).toHaveLength(1);
    const token = await world.rootToken(table);
    for (const { url } of replicas) {
      const { status, json } = await call(`${url}/api/v1/chamber/status`, { token });
      expect(status).toBe(200);
      expect(chamberStatusSchema.parse(json)).toMatchObject({
        state: 'Unsealed',
        custody: { generation: 1, threshold: 2, keys_reachable: 3 },
        latch: null,
        state_watcher: { stale: false },
        keys: expect.arrayContaining([{ source: 'filesystem', status: 'active', count: 1 }]),
        slashing: { backend: 'dynamodb', status: 'up' },
        network: 'mainnet',
        tee: { platform: 'off' },
      });
    }
  });
});

describe('break-glass', () => {
  it('a seal on one replica seals both; the latch survives a restart; deleting it and restarting recovers', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    const first = await start(table, ceremony);
    const second = await start(table, ceremony);
    const token = await world.rootToken(table);

    const sealed = await call(`${first.url}/api/v1/chamber/seal`, { token, body: { reason: 'drill' } });
    expect(sealed.status).toBe(200);
    expect(sealAnswerSchema.parse(sealed.json)).toMatchObject({ state: 'Sealed', reason: 'drill' });
    expect(await world.row(table, 'SEAL_OVERRIDE')).toMatchObject({
      reason: { S: 'drill' },
      accessor: { S: expect.stringMatching(/^acc_/) },
      sealed_at: { S: sealed.json['sealed_at'] },
    });
    await expectSealed(first, token);
    await second.logged('sealed');
    await expectSealed(second, token);
    await first.logged('request', { scope: 'chamber_seal', outcome: 'ok' });

    await second.stop();
    const restarted = await start(table, ceremony, 'listening');
    await expectSealed(restarted, token, true);

    await world.deleteRow(table, 'SEAL_OVERRIDE');
    await expectSealed(first, token); // there is no way back but a restart
    await restarted.stop();
    const recovered = await start(table, ceremony);
    const status = await call(`${recovered.url}/api/v1/chamber/status`, { token });
    expect(status.json).toMatchObject({ state: 'Unsealed', latch: null });
  });

  it('a reason that is too long or a body of another shape is 400, no body at all is a seal without a reason', async () => {
    const table = await world.createTable();
    const { url } = await start(table, world.createCeremony());
    const token = await world.rootToken(table);
    const seal = (body: unknown) => call(`${url}/api/v1/chamber/seal`, { token, body });
    for (const body of [
      { reason: 'x'.repeat(513) },
      { reason: 1 },
      { reasn: 'typo' },
      [],
      '{"reason":"a","reason":"b"}',
    ]) {
      expect((await seal(body)).json).toMatchObject({ code: 400, reason: 'malformed_body' });
    }
    expect(await world.row(table, 'SEAL_OVERRIDE')).toBeUndefined();
    expect((await call(`${url}/api/v1/chamber/seal`, { token: null, method: 'POST' })).status).toBe(401);
    expect((await call(`${url}/api/v1/chamber/seal`, { token: 'sr_mgmt_unknown', method: 'POST' })).status).toBe(403);
    const answer = await call(`${url}/api/v1/chamber/seal`, { token, method: 'POST' });
    expect(answer).toMatchObject({ status: 200, json: { state: 'Sealed', reason: null } });
  });
});

it('a rotation beside a replica of the former ceremony: that one goes on, and learns of it', async () => {
  const table = await world.createTable();
  const old = world.createCeremony();
  const running = await start(table, old);
  const next = { ...world.createCeremony(), generation: 2, retired_kms_keys: old.kms_keys };
  const rotating = await start(table, next);
  await rotating.logged('rotated: the master key is wrapped again', { generation: 2, was: 1 });
  await running.logged('the MASTER_KEY row is of another generation now', { generation: 2, was: 1 });
  const token = await world.rootToken(table);
  for (const [{ url }, generation] of [
    [running, 1],
    [rotating, 2],
  ] as const) {
    const status = await call(`${url}/api/v1/chamber/status`, { token });
    expect(status).toMatchObject({ status: 200, json: { state: 'Unsealed', custody: { generation } } });
  }
});

describe('a start that cannot be', () => {
  it('names each custody key and why it does not serve, and ends with 1', async () => {
    const table = await world.createTable();
    const ceremony = world.createCeremony();
    await (await start(table, ceremony)).stop();
    const [a, b] = ceremony.kms_keys.map(({ arns }) => arns[0] ?? '');
    world.kms.setBehaviour(a ?? '', 'disabled');
    world.kms.setBehaviour(b ?? '', 'denied');
    const failure = await start(table, ceremony).catch((error: Error) => error.message);
    expect(failure).toMatch(/^exit 1/);
    expect(failure).toContain(
      'strongroom: cannot start: custody: the master key needs 2 of its 3 custody keys and 1 served',
    );
    expect(failure).toContain(`${a} disabled: enable it`);
    expect(failure).toContain(`${b} access denied`);
  });

  it('says which table does not exist and how it is created', async () => {
    const failure = await start('nowhere', world.createCeremony()).catch((error: Error) => error.message);
    expect(failure).toMatch(/^exit 1/);
    expect(failure).toMatch(
      /custody: the state table "nowhere" cannot be used: it does not exist.*strongroom setup tables/,
    );
  });
});

async function expectSealed({ url, metricsUrl }: RunningSigner, token: string, startedSealed = false): Promise<void> {
  const refused = await signCall(url, testKey(0).publicKey, attestation(), { token });
  expect(refused).toMatchObject({ status: 503, json: { reason: 'sealed' } });
  await expectNoList(call(`${url}/api/v1/eth2/publicKeys`, { token }));
  for (const path of ['/api/v1/chamber/status', '/api/v1/chamber/seal']) {
    const method = path.endsWith('seal') ? 'POST' : 'GET';
    expect(await call(url + path, { token, method })).toMatchObject({ status: 401, json: { reason: 'auth_sealed' } });
  }
  expect(await call(`${url}/upcheck`)).toMatchObject({ status: 200, text: 'OK' });
  const health = await call(`${url}/healthcheck`);
  expect(health.status).toBe(503);
  const { checks } = healthSchema.parse(health.json);
  const [chamber, slashing, clock, watcher, keys] = checks;
  expect(chamber).toEqual({
    id: 'chamber',
    status: 'DOWN',
    detail: 'the chamber is sealed',
    sealed_at: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  expect(slashing?.id).toBe('anti_slashing');
  expect(slashing?.status === 'NOT_OPENED').toBe(startedSealed);
  expect(clock).toEqual({ id: 'clock', status: 'UP' });
  expect(watcher).toEqual({ id: 'state_watcher', status: 'UP' });
  expect(keys).toEqual({ id: 'keys', status: 'DOWN', detail: 'the signer is sealed and holds no keys' });
  expect((await call(metricsUrl)).text).toMatch(/^svc_chamber_unsealed 0$/m);
}
