// SIGHUP and POST /reload against the real program: new keys and tokens work, removed ones stop, nobody who asks
// meanwhile notices, and what cannot be read changes nothing.

import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { connect } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import type { RunningSigner } from '../../tools/rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { writeRawKey } from '../support/keys.ts';
import { attestation, call, randaoReveal, signCall, TEST_TOKEN, testKey } from '../support/requests.ts';
import { sized } from '../support/scale.ts';

const RELOADER = 'sr_client_TEST_TOKEN_that_may_reload_0000000001';
const OTHER = 'sr_client_TEST_TOKEN_declared_later_000000000001';
const POLICIES = [
  { name: 'full', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] },
  { name: 'reload', rules: [{ effect: 'allow', scopes: ['reload'] }] },
];
const TOKENS = [
  { secret: TEST_TOKEN, policies: ['full'] },
  { secret: RELOADER, policies: ['reload'] },
];

let signer: RunningSigner | undefined;
afterEach(async () => {
  await signer?.stop();
  signer = undefined;
});

async function started(keys: number): Promise<{ deployment: Deployment; signer: RunningSigner }> {
  const deployment = deploy(0, { static_auth: { policies: POLICIES, tokens: TOKENS } });
  for (let index = 0; index < keys; index++) put(deployment, index);
  signer = await deployment.start();
  return { deployment, signer };
}

const keyFolder = ({ folder }: Deployment) => join(folder, 'keys');
const put = (deployment: Deployment, index: number) =>
  writeRawKey(keyFolder(deployment), `k${index}`, Buffer.from(testKey(index).secret.slice(2), 'hex'));
const take = (deployment: Deployment, index: number) => rmSync(join(keyFolder(deployment), `k${index}.yaml`));
const keyOf = (index: number) => testKey(index).publicKey;
const sorted = (...indexes: readonly number[]) => indexes.map(keyOf).sort();

async function listed({ url }: RunningSigner): Promise<readonly string[]> {
  return JSON.parse((await call(`${url}/api/v1/eth2/publicKeys`)).text);
}

async function reloaded({ url }: RunningSigner, token: string = RELOADER): Promise<Record<string, unknown>> {
  expect((await call(`${url}/reload`, { method: 'POST', token })).status).toBe(202);
  for (;;) {
    const { json } = await call(`${url}/reload`, { token });
    if (json['status'] !== 'running') return json;
    await setTimeout(5);
  }
}

function declare({ folder }: RunningSigner, change: (config: Record<string, unknown>) => void): void {
  const file = readdirSync(folder).find((name) => name.endsWith('.yaml')) ?? '';
  const config = parse(readFileSync(join(folder, file), 'utf8')) as Record<string, unknown>;
  change(config);
  writeFileSync(join(folder, file), stringify(config));
}

describe('reload', () => {
  it('new keys sign, removed ones are unknown, and their history is kept', async () => {
    const { deployment, signer } = await started(2);
    expect((await signCall(signer.url, keyOf(1), attestation({ source: 1, target: 3 }))).status).toBe(200);
    expect((await call(`${signer.url}/reload`, { token: RELOADER })).json).toEqual({ status: 'idle' });

    take(deployment, 1);
    put(deployment, 2);
    expect(await reloaded(signer)).toMatchObject({ status: 'completed' });
    expect(await listed(signer)).toEqual(sorted(0, 2));
    expect((await signCall(signer.url, keyOf(2), randaoReveal())).status).toBe(200);
    expect((await signCall(signer.url, keyOf(1), randaoReveal())).status).toBe(404);

    put(deployment, 1);
    await reloaded(signer);
    const other = attestation({ source: 2, target: 3 });
    expect((await signCall(signer.url, keyOf(1), other)).status).toBe(412);
  });

  it('SIGHUP does the same', async () => {
    const { deployment, signer } = await started(1);
    put(deployment, 1);
    process.kill(signer.pid, 'SIGHUP');
    await signer.logged('the key files are loaded', { kept: 1, loaded: 1 });
    expect(await listed(signer)).toEqual(sorted(0, 1));
  });

  it('takes the scope `reload`', async () => {
    const { signer } = await started(1);
    for (const method of ['GET', 'POST']) {
      expect((await call(`${signer.url}/reload`, { method })).status).toBe(403);
      expect((await call(`${signer.url}/reload`, { method, token: null })).status).toBe(401);
    }
  });

  it('tokens: declared ones work from then on, removed ones are refused', async () => {
    const { signer } = await started(1);
    declare(signer, (config) => {
      config['static_auth'] = {
        policies: POLICIES,
        tokens: [
          { secret: OTHER, policies: ['full'] },
          { secret: RELOADER, policies: ['reload'] },
        ],
      };
    });
    expect(await reloaded(signer)).toMatchObject({ status: 'completed' });
    expect((await signCall(signer.url, keyOf(0), randaoReveal())).status).toBe(403);
    expect((await call(`${signer.url}/api/v1/eth2/publicKeys`, { token: OTHER })).status).toBe(200);
  });

  it('a configuration that is refused changes no token, and the keys are read all the same', async () => {
    const { deployment, signer } = await started(1);
    declare(signer, (config) => {
      config['static_auth'] = { policies: [], tokens: [{ secret: OTHER, policies: ['nowhere'] }] };
    });
    put(deployment, 1);
    expect(await reloaded(signer)).toMatchObject({ status: 'completed_with_errors' });
    await signer.logged('the configuration is refused: its tokens stay as they were');
    expect(await listed(signer)).toEqual(sorted(0, 1));
    expect((await call(`${signer.url}/reload`, { token: OTHER })).status).toBe(403);
  });

  it('tokens that would not start a signer change no token, and the keys are read all the same', async () => {
    const { deployment, signer } = await started(1);
    declare(signer, (config) => {
      const twice = { secret: OTHER, policies: ['full'] };
      config['static_auth'] = { policies: POLICIES, tokens: [twice, twice, ...TOKENS] };
    });
    put(deployment, 1);
    expect(await reloaded(signer)).toMatchObject({ status: 'completed_with_errors' });
    expect(await listed(signer)).toEqual(sorted(0, 1));
    expect((await call(`${signer.url}/reload`, { token: OTHER })).status).toBe(403);
  });

  it('another option that was changed is named, and needs a restart', async () => {
    const { signer } = await started(1);
    declare(signer, (config) => {
      config['signing'] = { queue_buffer_size: 77 };
    });
    await reloaded(signer);
    const line = await signer.logged('these options were changed, and need a restart');
    expect(line['options']).toEqual(['signing.queue_buffer_size']);
  });

  it('a key file that is broken keeps its key, and the answer says that something is wrong', async () => {
    const { deployment, signer } = await started(2);
    writeFileSync(join(keyFolder(deployment), 'k1.yaml'), 'type: [');
    expect(await reloaded(signer)).toMatchObject({
      status: 'completed_with_errors',
      lastError: '1 keys could not be loaded; the log names their files',
    });
    expect(await listed(signer)).toEqual(sorted(0, 1));
    expect((await call(`${signer.url}/healthcheck`)).status).toBe(503);
    put(deployment, 1);
    expect(await reloaded(signer)).toMatchObject({ status: 'completed' });
    expect((await call(`${signer.url}/healthcheck`)).status).toBe(200);
  });

  it('a key folder that is gone fails the reload, and every key stays', async () => {
    const { deployment, signer } = await started(1);
    rmSync(keyFolder(deployment), { recursive: true });
    expect(await reloaded(signer)).toMatchObject({ status: 'failed' });
    expect((await signCall(signer.url, keyOf(0), randaoReveal())).status).toBe(200);
  });

  it('TLS files are read at once, before their poll is due', async () => {
    const deployment = deploy(1);
    const old = makeCertificate(deployment.folder, 'old');
    const config = {
      static_auth: { policies: POLICIES, tokens: TOKENS },
      tls: {
        mode: 'file',
        listen_port: 0,
        file: { cert_path: old.cert, key_path: old.key, reload_interval_seconds: 86_400 },
      },
    };
    signer = await deployment.start({ config });
    const before = await fingerprintAt(signer.tlsUrl ?? '');
    const next = makeCertificate(deployment.folder, 'next');
    copyFileSync(next.cert, old.cert);
    copyFileSync(next.key, old.key);
    await reloaded(signer);
    expect(await fingerprintAt(signer.tlsUrl ?? '')).not.toBe(before);
  });

  it('two hundred reloads under load: no request fails, no key that stays vanishes, and nothing is left open', async () => {
    const { deployment, signer } = await started(8);
    await reloaded(signer);
    const files = openFiles(signer);
    const over = new AbortController();
    const statuses = new Set<number>();
    const missing = new Set<string>();
    const asking = [0, 1, 2].map(async (index) => {
      while (!over.signal.aborted) {
        statuses.add((await signCall(signer.url, keyOf(index), randaoReveal())).status);
        const present = new Set(await listed(signer));
        for (const key of sorted(0, 1, 2, 3, 4, 5)) if (!present.has(key)) missing.add(key);
      }
    });
    for (let round = 0; round < 200; round++) {
      if (round % 2 === 0) take(deployment, 6);
      else put(deployment, 6);
      expect(await reloaded(signer)).toMatchObject({ status: 'completed' });
    }
    over.abort();
    await Promise.all(asking);
    expect([...statuses]).toEqual([200]);
    expect([...missing]).toEqual([]);
    expect(openFiles(signer)).toBeLessThanOrEqual(files + 8); // connections of the clients above
  });
});

/** 0 where the system does not show them. */
function openFiles({ pid }: RunningSigner): number {
  if (process.platform !== 'linux') return 0;
  return readdirSync(`/proc/${pid}/fd`).length;
}

function fingerprintAt(url: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    }).on('error', reject);
  });
}
