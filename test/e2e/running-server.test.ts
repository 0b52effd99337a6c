// What the listeners of a running server offer: probes, credentials, formats, CORS, audit lines, metrics, OpenAPI.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';

describe('a running server', () => {
  const deployment = deploy(2, {
    server: { cors_allowed_origins: ['https://ops.example'] },
    canary_keys: [deploy(2).keys[1]?.publicKey],
  });
  const [key, canary] = deployment.keys.map(({ publicKey }) => publicKey);
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await deployment.start();
  });
  afterAll(() => signer.stop());

  it('answers probes without credentials', async () => {
    const upcheck = await call(`${signer.url}/upcheck`, { token: null });
    expect([upcheck.status, upcheck.text, upcheck.headers.get('content-type')]).toEqual([
      200,
      'OK',
      'text/plain; charset=utf-8',
    ]);
    const health = await call(`${signer.url}/healthcheck`, { token: null });
    // Every id in every mode: without a signer state there is nothing that the watcher could lose sight of.
    const ids = ['chamber', 'anti_slashing', 'clock', 'state_watcher', 'keys', 'log'];
    const checks = ids.map((id) => ({ id, status: 'UP' }));
    expect(health.json).toEqual({ status: 'UP', checks, outcome: 'UP' });
  });

  it('takes HTTP Basic on every route: the user name is ignored, the password is the token', async () => {
    const authorization = `Basic ${Buffer.from(`anyone:${TEST_TOKEN}`).toString('base64')}`;
    const list = await call(`${signer.url}/api/v1/eth2/publicKeys`, { token: null, headers: { authorization } });
    expect(list.text).toBe(JSON.stringify([key, canary].sort()));
    expect(
      (await signCall(signer.url, key ?? '', randaoReveal(), { token: null, headers: { authorization } })).status,
    ).toBe(200);
  });

  it('has no high watermark, and says so to whoever may list keys', async () => {
    const path = `${signer.url}/api/v1/eth2/highWatermark`;
    expect(await call(path)).toMatchObject({ status: 200, text: '{}' });
    expect((await call(path, { token: null })).status).toBe(401);
  });

  it.each([
    ['application/json', 'application/json'],
    ['*/*', 'application/json'],
    ['text/plain', 'text/plain; charset=utf-8'],
    ['', 'text/plain; charset=utf-8'],
  ])('answers Accept %j with %s', async (accept, type) => {
    const answer = await signCall(signer.url, key ?? '', randaoReveal(), { headers: { accept } });
    expect(answer.headers.get('content-type')).toBe(type);
    const hex = type === 'application/json' ? answer.json['signature'] : answer.text;
    expect(hex).toMatch(/^0x[0-9a-f]{192}$/);
  });

  it('finds a key by its hex with or without 0x, in any case', async () => {
    const digits = (key ?? '').slice(2);
    for (const identifier of [digits, digits.toUpperCase(), `0x${digits.toUpperCase()}`]) {
      expect((await signCall(signer.url, identifier, randaoReveal())).status).toBe(200);
    }
  });

  it('keeps connections alive for 75 seconds', async () => {
    expect((await call(`${signer.url}/upcheck`)).headers.get('keep-alive')).toBe('timeout=75');
  });

  it('returns the request id it was given, and makes one otherwise', async () => {
    const given = await call(`${signer.url}/upcheck`, { headers: { 'x-request-id': 'duty 7/42' } });
    expect(given.headers.get('x-request-id')).toBe('duty 7/42');
    for (const bad of ['x'.repeat(129), 'caf\u00E9']) {
      const made = await call(`${signer.url}/upcheck`, { headers: { 'x-request-id': bad } });
      expect(made.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    }
  });

  it.each([
    ['/upcheck', null],
    ['/healthcheck', null],
    ['/api/v1/eth2/publicKeys', TEST_TOKEN],
    ['/api/v1/eth2/publicKeys', null],
  ])('answers HEAD %s (token %s) as GET, without the body', async (path, token) => {
    const ask = async (method: string) => {
      const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
      const options = { method, headers: { 'x-request-id': 'same', ...authorization } };
      const answer = await fetch(`${signer.url}${path}`, options);
      const headers = Object.fromEntries(answer.headers);
      for (const name of ['date', 'connection', 'keep-alive']) delete headers[name]; // fetch closes after a HEAD
      return { status: answer.status, headers, text: await answer.text() };
    };
    const got = await ask('GET');
    expect(await ask('HEAD')).toEqual({ ...got, text: '' });
    expect(got.headers['content-length']).toBe(String(Buffer.byteLength(got.text)));
  });

  it('answers CORS preflights of allowed origins only, before credentials', async () => {
    const preflight = (origin: string) =>
      call(`${signer.url}/api/v1/eth2/publicKeys`, {
        method: 'OPTIONS',
        token: null,
        headers: { origin, 'access-control-request-method': 'GET' },
      });
    expect((await preflight('https://ops.example')).headers.get('access-control-allow-origin')).toBe(
      'https://ops.example',
    );
    expect((await preflight('https://evil.example')).headers.get('access-control-allow-origin')).toBeNull();
  });

  it('leaves one audit line for each authenticated request, without secrets', async () => {
    await signCall(signer.url, key ?? '', attestation(), { headers: { 'x-request-id': 'audit-me' } });
    const line = await signer.logged('request', { request_id: 'audit-me' });
    expect(line).toMatchObject({
      audit: true,
      client_ip: '127.0.0.1',
      accessor: 'static:0',
      scope: 'sign',
      public_key: key,
      operation: 'ATTESTATION',
      outcome: 'ok',
      status: 200,
    });
    expect(signer.output()).not.toContain(TEST_TOKEN);
    for (const { secret } of deployment.keys) expect(signer.output()).not.toContain(secret.slice(2));
    expect(signer.log.filter((entry) => entry['request_id'] === 'audit-me')).toHaveLength(1);
  });

  it('signs for a canary key, warns and counts', async () => {
    expect((await signCall(signer.url, canary ?? '', randaoReveal())).status).toBe(200);
    await signer.logged('a canary key signs', { public_key: canary });
    await expect.poll(canaryCount).toBe(1); // a rendering of the metrics lives for a moment
  });

  it('shows metrics on a port of their own, and nothing else there', async () => {
    const metrics = await call(signer.metricsUrl);
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(metrics.text).toMatch(/svc_signing_requests_total\{operation="RANDAO_REVEAL",outcome="signed"\} \d+/);
    expect((await call(signer.metricsUrl.replace('/metrics', '/api/v1/eth2/publicKeys'))).status).toBe(404);
    expect((await call(`${signer.url}/metrics`)).status).toBe(404);
  });

  it('OpenAPI describes exactly the mounted routes', async () => {
    const document = await call(`${signer.url}/api/openapi.json`, { token: null });
    const paths = document.json['paths'] as Record<string, object>;
    const described = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(described.sort()).toEqual([
      'GET /api/openapi.json',
      'GET /api/v1/chamber/keys',
      'GET /api/v1/chamber/slashing-protection',
      'GET /api/v1/chamber/status',
      'GET /api/v1/eth2/distributed/accounts',
      'GET /api/v1/eth2/distributed/accounts/{identifier}',
      'GET /api/v1/eth2/highWatermark',
      'GET /api/v1/eth2/publicKeys',
      'GET /healthcheck',
      'GET /reload',
      'GET /upcheck',
      'POST /api/v1/chamber/slashing-protection',
      'POST /api/v1/eth2/distributed/sign',
      'POST /api/v1/eth2/distributed/sign/{identifier}',
      'POST /api/v1/eth2/sign',
      'POST /api/v1/eth2/sign/{identifier}',
      'POST /reload',
    ]);
  });

  async function canaryCount(): Promise<number> {
    const { text } = await call(signer.metricsUrl);
    return Number(/^svc_canary_signing_total (\d+)/m.exec(text)?.[1] ?? Number.NaN);
  }
});
