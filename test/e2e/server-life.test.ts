// The life of the server process: how it starts, what its listeners offer, and how it ends.

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent, request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CLOSE_WAIT_MS } from '../../enclave/slashing/protection.ts';
import { type RunningSigner, runStrongroom } from '../../rehearsal/signer.ts';
import { makeCertificate } from '../support/certificates.ts';
import { deploy } from '../support/deployment.ts';
import { attestation, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';

/** A request has a permit, and waits for the slashing store. */
const INSIDE = /svc_signing_in_flight\{pool="normal"\} 1/;

describe('starting', () => {
  it('--check says that a configuration is valid and starts nothing', async () => {
    const deployment = deploy(1);
    const signer = await deployment.start();
    await signer.stop();
    const result = await runStrongroom(['server', '--check', '-c', join(deployment.folder, 'strongroom.yaml')]);
    expect(result).toEqual({ code: 0, stdout: 'strongroom: the configuration is valid\n', stderr: '' });
  });

  it('every violation is printed with its path and origin, and the exit code is 78', async () => {
    const folder = deploy(1).folder;
    const file = join(folder, 'bad.yaml');
    writeFileSync(file, 'server: { listen_port: 99999 }\nanti_slashing: { backend: noop }\nsurprise: 1\n');
    const result = await runStrongroom(['server', '-c', file, '--signing-queue-buffer-size', 'many']);
    expect(result.code).toBe(78);
    for (const part of ['server.listen_port', 'bad.yaml', 'surprise', '--signing-queue-buffer-size', 'noop']) {
      expect(result.stderr).toContain(part);
    }
  });

  it('what only an enclave can give is refused outside of one, never ignored', async () => {
    const result = await runStrongroom(['server', '--tls-mode', 'ratls']);
    expect(result.code).toBe(78);
    expect(result.stderr).toMatch(/tls\.mode is ratls, and there is no TEE/);
  });

  it('a configuration for an enclave image is checked anywhere, and run in an image only', async () => {
    const file = join(deploy(1).folder, 'enclave.yaml');
    const endpoint = '{hostname: db.example.org, loopback: 127.0.1.1, vsock_port: 8001, port: 5432}';
    const sections = [
      'tls: {mode: ratls}',
      'anti_slashing: {backend: postgres, url: "postgres://signer@db.example.org/slashing"}',
      `tee: {platform: nitro, nitro: {egress: {endpoints: [${endpoint}]}}}`,
      'parent_proxy: {enclave_cid: 16}',
      'static_auth: {policies: [{name: a, rules: [{effect: allow}]}], anonymous: {policies: [a]}}',
    ];
    writeFileSync(file, sections.join('\n'));
    expect(await runStrongroom(['server', '--check', '-c', file])).toMatchObject({ code: 0, stderr: '' });
    const run = await runStrongroom(['server', '-c', file]);
    expect(run.code).toBe(78);
    expect(run.stderr).toMatch(/tee\.platform is nitro, and this is not an enclave image\n.*strongroom eif build/s);
  });

  it('a key directory that is not there ends the start with exit code 1 and says which', async () => {
    const args = ['server', '--key-sources-filesystem-paths', '/nowhere/keys', '--anti-slashing-backend', 'noop'];
    const ports = ['--server-listen-port', '0', '--metrics-listen-port', '0', '--allow-unsafe-noop-anti-slashing'];
    const result = await runStrongroom([...args, ...ports]);
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(/cannot start: keys: .*\/nowhere\/keys/);
  });

  it('a port that is taken ends the start with exit code 1', async () => {
    const signer = await deploy(1).start();
    const { port } = new URL(signer.url);
    const server = { listen_port: Number(port) };
    await expect(deploy(1).start({ config: { server } })).rejects.toThrow(/exit 1: .*listeners: .*EADDRINUSE/s);
    await signer.stop();
  });

  it('unknown commands and --help', async () => {
    expect((await runStrongroom(['sever'])).code).toBe(1);
    expect((await runStrongroom(['--help'])).stdout).toMatch(/server.*slashing/s);
    expect((await runStrongroom(['server', '--help'])).stdout).toMatch(/--anti-slashing-sqlite-path/);
    expect((await runStrongroom(['slashing', '--help'])).stdout).toMatch(/EIP-3076/);
  });
});

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
    const checks = ['chamber', 'anti_slashing', 'state_watcher', 'keys'].map((id) => ({ id, status: 'UP' }));
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
    ['/api/v1/eth2/publicKeys', 'sr_client_unknown_unknown_unknown'],
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
      'GET /api/v1/eth2/publicKeys',
      'GET /healthcheck',
      'GET /reload',
      'GET /upcheck',
      'POST /api/v1/chamber/slashing-protection',
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

describe('ending', () => {
  it('SIGTERM: requests in flight are answered, then the process ends with 0', async () => {
    const deployment = deploy(4);
    const signer = await deployment.start();
    const requests = Array.from({ length: 200 }, (_, index) =>
      signCall(signer.url, deployment.keys[index % 4]?.publicKey ?? '', randaoReveal(index)).then(
        ({ status }) => status,
        () => 0,
      ),
    );
    await Promise.race(requests);
    const code = await signer.stop();
    expect(code).toBe(0);
    const statuses = await Promise.all(requests);
    // A connection may be refused after the signal, or answered 503; none that was accepted is cut.
    expect(new Set(statuses.filter((status) => status !== 200 && status !== 503))).toEqual(
      statuses.includes(0) ? new Set([0]) : new Set(),
    );
    await signer.logged('stopped');
    expect(signer.log.filter(({ msg }) => msg === 'requests were cut: the grace time is over')).toEqual([]);
  });

  it('a slashing store that hangs does not hold the end up beyond the grace time', async () => {
    const deployment = deploy(1);
    const signer = await deployment.start({ config: { server: { graceful_shutdown_timeout_seconds: 2 } } });
    const database = new DatabaseSync(join(signer.folder, 'slashing_protection.sqlite'));
    // The next record takes the database some minutes.
    database.exec(
      `CREATE VIEW slow AS WITH RECURSIVE numbers(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM numbers)
         SELECT value FROM numbers LIMIT 2000000000;
       CREATE TRIGGER hang BEFORE INSERT ON attestations BEGIN SELECT count(*) FROM slow; END`,
    );
    database.close();
    const answer = signCall(signer.url, deployment.keys[0]?.publicKey ?? '', attestation()).catch(() => undefined);
    await expect.poll(async () => (await call(signer.metricsUrl)).text, { interval: 1000 }).toMatch(INSIDE);
    const started = performance.now();
    expect(await signer.stop()).toBeNull(); // ended by the kernel: its thread is not to be had back
    expect(performance.now() - started).toBeLessThan(CLOSE_WAIT_MS);
    await answer;
    await signer.logged('the slashing store does not answer: it is closed');
  });

  it('a client that stalls in mid-request does not hold the end up longer than the grace time', async () => {
    const signer = await deploy(1).start({ config: { server: { graceful_shutdown_timeout_seconds: 1 } } });
    const socket = connect(Number(new URL(signer.url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('POST /api/v1/eth2/sign/0xab HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf');
    await new Promise((resolve) => socket.once('data', resolve)); // refused without credentials, the body is still owed
    expect(await signer.stop()).toBe(0);
    socket.destroy();
  });
});

describe('TLS from files', () => {
  it('serves the same routes, puts a renewed certificate in force without a restart, and keeps the old one on a bad pair', async () => {
    const deployment = deploy(1);
    const { folder } = deployment;
    const [first, second] = [makeCertificate(folder, 'first'), makeCertificate(folder, 'second')];
    const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
    const install = (pair: { cert: string; key: string }): void => {
      copyFileSync(pair.key, key);
      copyFileSync(pair.cert, cert);
    };
    install(first);
    const signer = await deployment.start({
      config: {
        tls: {
          mode: 'file',
          listen_address: '127.0.0.1',
          listen_port: 0,
          max_connections: 2,
          file: { cert_path: cert, key_path: key, reload_interval_seconds: 1 },
        },
      },
    });
    expect(await httpsGet(`${signer.tlsUrl}/upcheck`, first.cert)).toBe('OK');

    install(second);
    await signer.logged('TLS certificate reloaded');
    expect(await httpsGet(`${signer.tlsUrl}/upcheck`, second.cert)).toBe('OK');

    copyFileSync(first.key, key);
    await signer.logged('TLS certificate not reloaded: the old one stays in force');
    expect(await httpsGet(`${signer.tlsUrl}/upcheck`, second.cert)).toBe('OK');

    // tls.max_connections: two stay, a third is closed without an answer.
    const port = Number(new URL(signer.tlsUrl ?? '').port);
    const open = await Promise.all([1, 2].map(() => secureConnection(port)));
    await expect(secureConnection(port)).rejects.toThrow();
    for (const socket of open) socket.destroy();
    expect(readFileSync(key, 'utf8')).toContain('PRIVATE KEY');
    expect(signer.output()).not.toContain('PRIVATE KEY');
    await signer.stop();
  });

  it('a key that does not belong to the certificate ends the start and is named', async () => {
    const deployment = deploy(1);
    const [one, other] = [makeCertificate(deployment.folder, 'one'), makeCertificate(deployment.folder, 'other')];
    const tls = { mode: 'file', listen_port: 0, file: { cert_path: one.cert, key_path: other.key } };
    await expect(deployment.start({ config: { tls } })).rejects.toThrow(
      /tls\.file\.key_path: the key in .* does not belong/,
    );
  });
});

describe('the environment and flags', () => {
  it('flags win over the environment, the environment over the file', async () => {
    const deployment = deploy(1, { logging: { level: 'error' } });
    const signer = await deployment.start({
      env: { SVC_LOGGING__LEVEL: 'warn', SVC_NETWORK: 'hoodi' },
      args: ['--logging-level', 'info', '--network', 'sepolia'],
    });
    expect(parse(readFileSync(join(deployment.folder, 'strongroom.yaml'), 'utf8')).logging.level).toBe('error');
    const answer = await signCall(signer.url, deployment.keys[0]?.publicKey ?? '', attestation());
    expect(answer.json['reason']).toBe('network_mismatch'); // mainnet's request at a sepolia signer
    await signer.stop();
  });
});

function httpsGet(url: string, caFile: string): Promise<string> {
  const agent = new Agent({ ca: readFileSync(caFile), keepAlive: false });
  return new Promise((resolve, reject) => {
    const request = httpsRequest(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => resolve(text));
    });
    request.on('error', reject);
    request.end();
  });
}

function secureConnection(port: number): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(socket));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('closed')));
  });
}
