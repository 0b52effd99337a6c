// A whole signer in this process, on a clock that the test moves and behind a proxy that makes DynamoDB fail: what is
// signed, what is refused and with which words, and that it all comes back by itself.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../common/observe/logger.ts';
import type { BootedSigner } from '../../signer/boot/boot.ts';
import { FAULTS, randomFaults } from '../support/fault-proxy.ts';
import { expectNoList } from '../support/no-list.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { presentBlock } from '../support/present.ts';
import { type Answer, attestation, call, signCall, testKey } from '../support/requests.ts';
import { NETWORK } from './replicas.ts';
import { signerSite } from './whole-signer.ts';

const KEY = testKey(0).publicKey;
const WAIT = { timeout: LONGEST_WAIT_MS, interval: 20 };
const REJOINED = { timeout: LONGEST_WAIT_MS, interval: 250 };

const site = signerSite();
let signer: BootedSigner | undefined;
let url: string;
let log: string;

afterEach(async () => {
  site.proxy.setRule(undefined);
  await signer?.shutDown();
  signer = undefined;
});

async function start(state: Record<string, unknown> = {}, ceremony = site.world.createCeremony()): Promise<void> {
  const configured = site.world.configuration(site.table, ceremony)['signer_state'] as object;
  log = '';
  const logger = createLogger(
    { level: 'warn,audit=off', format: 'text', color: false },
    { write: (line) => (log += line) },
  );
  signer = await site.boot(logger, { signer_state: { ...configured, ...state } }, ceremony);
  await signer.keysLoaded;
  url = `http://127.0.0.1:${signer.listeners.http.port}`;
}

async function clientToken(): Promise<string> {
  const token = await site.world.rootToken(site.table);
  const policy = { name: 'vc', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] };
  expect(await call(`${url}/api/v1/auth/policies`, { token, body: policy })).toMatchObject({ status: 201 });
  const created = await call(`${url}/api/v1/auth/tokens`, { token, body: { policies: ['vc'] } });
  expect(created.status).toBe(201);
  return created.json['token'] as string;
}

let epoch = 10;
function signNext(token: string): Promise<Answer> {
  epoch += 1;
  return signCall(url, KEY, attestation({ source: epoch - 1, target: epoch }), { token });
}

/** A block of the site's present: later than the jump of a signer that was out for longer than its lease. */
function signPresent(token: string): Promise<Answer> {
  return signCall(url, KEY, presentBlock(Date.now() + site.ahead * 1000), { token });
}

/** Looks at the state table that found it rolled back. */
async function rolledBack(): Promise<number> {
  const { text } = await call(`http://127.0.0.1:${signer?.listeners.metrics.port}/metrics`);
  return Number(/^svc_auth_heads_rejected_total\{problem="rolled_back"\} (\d+)$/m.exec(text)?.[1]);
}

describe('losing DynamoDB', () => {
  it('signing goes on for the staleness bound, then is 503 state_stale, and resumes by itself', async () => {
    await start();
    const token = await clientToken();
    expect((await signNext(token)).status).toBe(200);

    site.proxy.setRule(() => FAULTS.resetBefore);
    site.ahead += 8;
    expect((await signNext(token)).status).toBe(200);
    site.ahead += 8;
    expect(await signNext(token)).toMatchObject({ status: 503, json: { reason: 'state_stale' } });
    await expectNoList(call(`${url}/api/v1/eth2/publicKeys`, { token }));
    expect((await call(`${url}/upcheck`)).status).toBe(200);
    const health = await call(`${url}/healthcheck`);
    expect(health.status).toBe(503);
    expect(health.json['checks']).toContainEqual(expect.objectContaining({ id: 'state_watcher', status: 'DOWN' }));
    expect(health.json['checks']).toContainEqual({ id: 'chamber', status: 'UP' });

    site.proxy.setRule(undefined);
    await vi.waitFor(async () => expect((await signPresent(token)).status).toBe(200), REJOINED);
    expect((await call(`${url}/healthcheck`)).status).toBe(200);
  });

  it('a table that goes back at once after a revocation does not undo it, is counted, and stops signing', async () => {
    await start();
    const token = await clientToken();
    const root = await site.world.rootToken(site.table);
    const { json } = await call(`${url}/api/v1/auth/tokens/lookup-self`, { token });
    const accessor = json['accessor'] as string;
    const before = [
      await site.world.row(site.table, 'AUTH_REVISION'),
      await site.world.row(site.table, `TOKEN#${accessor}`),
    ];
    const revoked = await call(`${url}/api/v1/auth/tokens/${accessor}`, { token: root, method: 'DELETE' });
    expect(revoked.status).toBe(204);
    for (const item of before) if (item !== undefined) await site.world.putRow(site.table, item);
    await vi.waitFor(async () => expect(await rolledBack()).toBeGreaterThan(0), WAIT);
    expect(await signNext(token)).toMatchObject({ status: 403, json: { reason: 'invalid_token' } });
    site.ahead += 11;
    const seen = await rolledBack();
    await vi.waitFor(async () => expect(await rolledBack()).toBeGreaterThan(seen), WAIT);
    expect(await signNext(token)).toMatchObject({ status: 503, json: { reason: 'state_stale' } });
  });

  it('a seal that cannot be written answers 503, and can be repeated on the same replica', async () => {
    await start();
    const token = await site.world.rootToken(site.table);
    site.proxy.setRule(() => FAULTS.internalError);
    const seal = () => call(`${url}/api/v1/chamber/seal`, { token, method: 'POST' });
    expect(await seal()).toMatchObject({ status: 503, json: { reason: 'state_stale' } });
    site.proxy.setRule(undefined);
    expect(await seal()).toMatchObject({ status: 200, json: { state: 'Sealed' } });
  });
});

describe('while 30 % of all requests to DynamoDB fail', () => {
  const disturbances = [
    FAULTS.dropAnswer,
    FAULTS.resetBefore,
    FAULTS.resetAfter,
    FAULTS.internalErrorAfterApplying,
    FAULTS.transactionConflict,
    FAULTS.throttled,
  ];

  it('every vote is signed, and policies and tokens are made, changed and revoked without a wrong refusal', async () => {
    await start();
    const token = await clientToken();
    const root = await site.world.rootToken(site.table);
    site.proxy.setRule(randomFaults(7, 0.3, disturbances));
    const statuses: number[] = [];
    for (let round = 0; round < 40; round++) {
      statuses.push((await signNext(token)).status);
      const made = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['vc'] } });
      expect([201, 503]).toContain(made.status);
      if (made.status !== 201) continue;
      statuses.push((await signNext(made.json['token'] as string)).status);
      const revoked = await call(`${url}/api/v1/auth/tokens/${String(made.json['accessor'])}`, {
        token: root,
        method: 'DELETE',
      });
      expect([204, 503]).toContain(revoked.status);
    }
    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    expect(statuses.length).toBeGreaterThan(60);
    expect(site.proxy.faults).toBeGreaterThan(20);
  });

  it('a seal gets through', async () => {
    await start();
    const token = await site.world.rootToken(site.table);
    site.proxy.setRule(randomFaults(11, 0.3, disturbances));
    await vi.waitFor(async () => {
      const { status } = await call(`${url}/api/v1/chamber/seal`, { token, method: 'POST' });
      expect(status).toBe(200);
    }, WAIT);
    expect(await site.world.row(site.table, 'SEAL_OVERRIDE')).toBeDefined();
  });
});

describe('the watcher', () => {
  it('seals when the latch row appears, whoever wrote it, also beside rows that cannot be read', async () => {
    await start();
    const token = await clientToken();
    expect(log).not.toContain('refresh_interval_seconds');
    await site.world.putRow(site.table, { pk: { S: 'AUTH_REVISION' }, revision: { S: 'seven' } });
    await site.world.putRow(site.table, { pk: { S: 'SEAL_OVERRIDE' } });
    await vi.waitFor(async () => {
      expect(await signNext(token)).toMatchObject({ status: 503, json: { reason: 'sealed' } });
    }, WAIT);
  });

  it('an interval of 0 turns it off: no latch is seen and nothing is ever stale, and the start says so', async () => {
    await start({ refresh_interval_seconds: 0 });
    expect(log).toContain('seals, revocations and changed policies that are made elsewhere do not reach this replica');
    const token = await clientToken();
    const root = await site.world.rootToken(site.table);
    const before = await readsOfState();
    await site.world.putRow(site.table, { pk: { S: 'SEAL_OVERRIDE' } });
    site.ahead += 86_400;
    // The right to sign over the fleet's store is taken again all the same, by way of a jump.
    await vi.waitFor(async () => expect((await signPresent(token)).status).toBe(200), REJOINED);
    const status = await call(`${url}/api/v1/chamber/status`, { token: root });
    expect(status.json).toMatchObject({ state: 'Unsealed', state_watcher: null });
    expect(await readsOfState()).toBe(before);
  });

  /** The watcher's reads; the heartbeat of the binding is another call. */
  async function readsOfState(): Promise<string | undefined> {
    const { text } = await call(`http://127.0.0.1:${signer?.listeners.metrics.port}/metrics`);
    return /^svc_dynamodb_calls_total\{operation="BatchGetItem",outcome="ok"\} \d+$/m.exec(text)?.[0];
  }

  it('the metrics tell the age of the state, the calls and the chamber', async () => {
    await start();
    const metrics = await call(`http://127.0.0.1:${signer?.listeners.metrics.port}/metrics`);
    expect(metrics.text).toMatch(/^svc_chamber_unsealed 1$/m);
    expect(metrics.text).toMatch(/^svc_custody_generation 1$/m);
    expect(metrics.text).toMatch(/^svc_slashing_jumps_total\{cause="boot"\} 0$/m);
    expect(metrics.text).toMatch(/^svc_state_age_seconds \d/m);
    expect(metrics.text).toMatch(/^svc_dynamodb_calls_total\{operation="TransactWriteItems",outcome="ok"\} 1$/m);
    expect(metrics.text).toMatch(/^svc_kms_calls_total\{operation="Encrypt",outcome="ok"\} 3$/m);
  });
});

describe('the deployment that the master key is bound to', () => {
  it('is that of the configuration: network and deployment_id, or the table’s name', async () => {
    const ceremony = site.world.createCeremony();
    await start({ deployment_id: 'fleet-a' }, ceremony);
    const record = JSON.parse((await site.world.row(site.table, 'MASTER_KEY'))?.['record']?.S ?? '') as {
      deployment: object;
    };
    expect(record.deployment).toEqual({ network: NETWORK, id: 'fleet-a' });
    await signer?.shutDown();
    signer = undefined;
    await expect(start({}, ceremony)).rejects.toThrow(
      `custody: the MASTER_KEY row is of the deployment "fleet-a" and this signer is of "${site.table}"`,
    );
    await start({ deployment_id: 'fleet-a' }, ceremony);
  });
});

describe('who may ask for the status and who may seal', () => {
  it('a client token needs the scope; a management token needs none', async () => {
    await start();
    const root = await site.world.rootToken(site.table);
    const policy = { name: 'monitoring', rules: [{ effect: 'allow', scopes: ['chamber_status'] }] };
    await call(`${url}/api/v1/auth/policies`, { token: root, body: policy });
    const created = await call(`${url}/api/v1/auth/tokens`, { token: root, body: { policies: ['monitoring'] } });
    const monitoring = created.json['token'] as string;
    const other = await clientToken();
    const status = (token: string) => call(`${url}/api/v1/chamber/status`, { token });
    const seal = (token: string) => call(`${url}/api/v1/chamber/seal`, { token, method: 'POST' });
    expect((await status(root)).status).toBe(200);
    expect((await status(monitoring)).status).toBe(200);
    expect((await status(other)).status).toBe(403);
    expect((await seal(monitoring)).status).toBe(403);
    expect((await seal(other)).status).toBe(403);
    expect((await seal(root)).status).toBe(200);
  });
});
