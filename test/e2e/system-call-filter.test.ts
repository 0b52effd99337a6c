// The real signer under `server.seccomp: required`: everything it does goes on, and a program that it would start does
// not.

import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDynamoDB } from '../../rehearsal/dynamodb.ts';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { addonForTests } from '../support/addon.ts';
import { makeCertificate } from '../support/certificates.ts';
import { type Deployment, deploy } from '../support/deployment.ts';
import { LIGHT_SCRYPT, testSecret, writeKeystore } from '../support/keys.ts';
import { PORTABLE_PROGRAM } from '../support/portable-program.ts';
import { startPostgres } from '../support/postgres.ts';
import { attestation, block, call, randaoReveal, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';

const usable = addonForTests() && process.platform === 'linux';

/** Loaded before the signer, in its process: on SIGUSR2 it tries to start a program and leaves a line in the log. */
const SPAWNER = `data:text/javascript,${encodeURIComponent(`
  import { spawnSync } from 'node:child_process';
  process.on('SIGUSR2', () => {
    const { error, status } = spawnSync('true');
    process.stdout.write(JSON.stringify({ msg: 'spawned', outcome: error?.code ?? 'exit ' + status }) + '\\n');
  });`)}`;

let postgres: Awaited<ReturnType<typeof startPostgres>>;
let dynamodb: Awaited<ReturnType<typeof startDynamoDB>>;
beforeAll(async () => {
  if (usable) [postgres, dynamodb] = await Promise.all([startPostgres(), startDynamoDB()]);
});
afterAll(async () => {
  if (usable) await Promise.all([postgres.close(), dynamodb.close()]);
});

async function onBackend(backend: string): Promise<{ config: object; env: Record<string, string> }> {
  if (backend === 'sqlite') return { config: {}, env: {} };
  if (backend === 'postgres') {
    const url = postgres.url(await postgres.createDatabase());
    return { config: { anti_slashing: { backend } }, env: { SVC_ANTI_SLASHING__URL: url } };
  }
  await dynamodb.createTable(tableDefinition('slashing'));
  const env = {
    AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'TEST',
    AWS_SECRET_ACCESS_KEY: 'TEST',
  };
  return { config: { anti_slashing: { backend, table: 'slashing' } }, env };
}

/** A signer with raw keys, keystores that worker threads open, and a TLS listener. */
async function start(backend: string, core?: 'native' | 'portable'): Promise<[Deployment, RunningSigner, string]> {
  const { config, env } = await onBackend(backend);
  const deployment = deploy(1, config as Record<string, unknown>);
  const keystore = writeKeystore(
    join(deployment.folder, 'keys'),
    'keystore',
    testSecret(7),
    'a test password',
    LIGHT_SCRYPT,
  );
  const { cert, key } = makeCertificate(deployment.folder, 'signer');
  const signer = await deployment.start({
    config: {
      server: { seccomp: 'required' },
      tls: { mode: 'file', listen_address: '127.0.0.1', listen_port: 0, file: { cert_path: cert, key_path: key } },
    },
    env: { ...env, NODE_OPTIONS: `--import ${SPAWNER}` },
    ...(core === 'portable' ? { program: PORTABLE_PROGRAM } : {}),
  });
  return [deployment, signer, keystore];
}

async function spawnInside(signer: RunningSigner): Promise<unknown> {
  process.kill(signer.pid, 'SIGUSR2');
  return (await signer.logged('spawned'))['outcome'];
}

function upcheckOverTls(url: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    // The certificate is the test's own; what is asked here is whether TLS works under the filter.
    request(`${url}/upcheck`, { rejectUnauthorized: false, agent: false }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode));
    })
      .on('error', reject)
      .end();
  });
}

describe.skipIf(!usable)('under server.seccomp: required', () => {
  it.each([
    ['sqlite', 'native'],
    ['sqlite', 'portable'],
    ['postgres', 'native'],
    ['dynamodb', 'native'],
  ] as const)(
    'a signer on %s with the %s core signs, refuses and stops as ever, and starts no program',
    async (backend, core) => {
      const [deployment, signer, keystore] = await start(backend, core);
      expect(await signer.logged('system calls are filtered')).toMatchObject({ policy: 'required' });

      for (const key of [deployment.keys[0]?.publicKey ?? '', keystore]) {
        expect((await signCall(signer.url, key, block({ slot: 7 }))).status).toBe(200);
        expect((await signCall(signer.url, key, block({ slot: 7, body: rootOf(9) }))).status).toBe(412);
        expect((await signCall(signer.url, key, attestation())).status).toBe(200);
      }
      const many = Array.from({ length: 64 }, (_, epoch) => signCall(signer.url, keystore, randaoReveal(epoch)));
      expect(new Set((await Promise.all(many)).map(({ status }) => status))).toEqual(new Set([200]));
      expect(await upcheckOverTls(signer.tlsUrl ?? '')).toBe(200);
      expect((await call(signer.metricsUrl, { token: null })).text).toMatch(/^svc_system_calls_filtered 1$/m);
      expect((await call(`${signer.url}/healthcheck`, { token: TEST_TOKEN })).json).toMatchObject({ outcome: 'UP' });

      const threads = readdirSync(`/proc/${signer.pid}/task`);
      const states = threads.map((id) => readFileSync(`/proc/${signer.pid}/task/${id}/status`, 'utf8'));
      expect(states.filter((state) => !/^Seccomp:\t2$/m.test(state))).toEqual([]);
      expect(await spawnInside(signer)).toBe('EPERM');
      expect((await signCall(signer.url, keystore, randaoReveal())).status).toBe(200);
      expect(await signer.stop()).toBe(0);
      rmSync(deployment.folder, { recursive: true });
    },
  );

  it('without a filter the same signer can start programs: it is the filter that refuses', async () => {
    const signer = await deploy(1).start({ env: { NODE_OPTIONS: `--import ${SPAWNER}` } });
    expect(await spawnInside(signer)).toBe('exit 0');
    expect((await call(signer.metricsUrl, { token: null })).text).toMatch(/^svc_system_calls_filtered 0$/m);
    await signer.stop();
  });
});
