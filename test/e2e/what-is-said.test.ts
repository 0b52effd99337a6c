// What a running signer says of itself: the warnings of its start, audit lines whatever the level, and keys whose
// memory is not locked.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { chamberStatusSchema } from '../../signer/api/chamber.ts';
import { makeExpiredCertificate } from '../support/certificates.ts';
import { deploy } from '../support/deployment.ts';
import { PORTABLE_PROGRAM } from '../support/portable-program.ts';
import { call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';

let folder: string;
let signer: RunningSigner;
let publicKey: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-said-'));
  const { cert, key } = await makeExpiredCertificate(folder, 'old');
  const deployment = deploy(1);
  publicKey = deployment.keys[0]?.publicKey ?? '';
  signer = await deployment.start({
    program: PORTABLE_PROGRAM,
    config: {
      static_auth: {
        policies: [{ name: 'all', rules: [{ effect: 'allow' }] }],
        tokens: [{ secret: TEST_TOKEN, policies: ['all'] }],
      },
      logging: { level: 'warn,server=info' },
      server: { trust_proxy_headers: true },
      tls: { mode: 'file', listen_address: '127.0.0.1', listen_port: 0, file: { cert_path: cert, key_path: key } },
    },
    env: { SVC_SERVICE_HOST: '10.0.0.1', SVC_SERVICE_PORT: '9000' },
  });
});
afterAll(async () => {
  await signer.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('a signer that was told to say little', () => {
  it('says who signed what all the same', async () => {
    expect((await signCall(signer.url, publicKey, randaoReveal())).status).toBe(200);
    const line = await signer.logged('request', { scope: 'sign' });
    expect(line).toMatchObject({ level: 'info', module: 'audit', audit: true, outcome: 'ok', public_key: publicKey });
    expect(signer.log.filter(({ module, level }) => module === 'http' && level === 'info')).toEqual([]);
  });

  it('says at its start what is odd about its configuration and its certificate', () => {
    const warnings = signer.log.filter(({ level }) => level === 'warn');
    expect(warnings.map(({ option }) => option).filter(Boolean)).toEqual([
      'anti_slashing.unsafe_unconfirmed_clock', // of every signer of the tests
      'server.trust_proxy_headers',
    ]);
    expect(warnings.map(({ msg }) => msg).join('\n')).toContain('holds a certificate that expired at 2020-02-01');
  });

  it('has one line for the variables that Kubernetes injects', () => {
    const lines = signer.log.filter(({ msg }) => String(msg).includes('Kubernetes'));
    expect(lines).toMatchObject([{ level: 'info', variables: 2 }]);
  });
});

describe('keys whose memory is not locked', () => {
  it('are warned of once they are loaded, and counted in the status and in the metric', async () => {
    const warning = signer.log.find(({ unlocked_keys }) => unlocked_keys !== undefined);
    expect(warning).toMatchObject({ level: 'warn', unlocked_keys: 1 });
    const status = chamberStatusSchema.parse((await call(`${signer.url}/api/v1/chamber/status`)).json);
    expect(status.memory).toEqual({ mlock: 'best_effort', unlocked_keys: 1 });
    expect((await call(signer.metricsUrl, { token: null })).text).toMatch(/^svc_unlocked_keys 1$/m);
  });
});
