// The plain listeners of an enclave: probes and metrics, and no way to anything else.

import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HealthCheck } from '../../../signer/api/health.ts';
import { listenMetricsOnTransport } from '../../../signer/http/listeners/metrics.ts';
import { listenProbes, MAX_PROBE_CONNECTIONS } from '../../../signer/http/listeners/probe.ts';
import type { TransportServer } from '../../../signer/http/listeners/transport-server.ts';
import { closed } from '../../support/streams.ts';
import { unixTransport } from '../../support/unix-transport.ts';

const PORT = 9000;
/** Many times the pause between two bytes of a client that dribbles: only the limit of the whole ends it. */
const LONG_MS = 300;

let folder: string;
let checks: HealthCheck[];
let counted: string[];
let listener: TransportServer;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'probes-'));
  checks = [{ id: 'chamber', status: 'UP' }];
  counted = [];
  listener = await listenProbes(
    { checks: () => checks },
    {
      transport: unixTransport(folder, 'enclave'),
      port: PORT,
      onRequest: (route, status) => counted.push(`${route} ${status}`),
    },
  );
});

afterEach(async () => {
  await close(listener);
  rmSync(folder, { recursive: true });
});

async function close(server: TransportServer): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(resolve));
  server.closeAllConnections();
  await closed;
}

async function ask(path: string, options: http.RequestOptions & { readonly body?: string } = {}, port = PORT) {
  const socket = await unixTransport(folder, 'parent').connect(port);
  const agent = new http.Agent();
  agent.createConnection = () => socket;
  const request = http.request({ agent, path, host: 'signer', ...options });
  request.on('error', () => undefined); // the signer may hang up before it has taken all of a body
  request.end(options.body);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const body = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>)).toString();
  return { status: response.statusCode, headers: response.headers, body };
}

describe('the probe listener', () => {
  it.each(['', 'GET /upcheck HTTP/1.1\r\n'])('cuts off who does not get as far as a request: %j', async (text) => {
    await close(listener);
    const options = { transport: unixTransport(folder, 'enclave'), port: PORT, requestTimeoutMs: LONG_MS };
    listener = await listenProbes({ checks: () => checks }, options);
    expect(await dribble(PORT, text)).toBe(true);
  });

  it.each(['/upcheck', '//upcheck', '/upcheck//?x=//'])('answers that the signer is alive: %s', async (path) => {
    expect(await ask(path)).toMatchObject({
      status: 200,
      body: 'OK',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
  });

  it('answers whether the signer can sign, as every other listener does', async () => {
    expect(await ask('/healthcheck')).toMatchObject({
      status: 200,
      body: '{"status":"UP","checks":[{"id":"chamber","status":"UP"}],"outcome":"UP"}',
    });
    checks = [{ id: 'chamber', status: 'DOWN', detail: 'sealed' }];
    const down = await ask('/healthcheck/?verbose');
    expect(down).toMatchObject({ status: 503, headers: { 'retry-after': '1' } });
    expect(JSON.parse(down.body)).toMatchObject({ status: 'DOWN', outcome: 'DOWN' });
    expect(counted).toEqual(['/healthcheck 200', '/healthcheck 503']);
  });

  it.each([
    ['GET', '/api/v1/eth2/publicKeys'],
    ['POST', '/api/v1/eth2/sign/0x00'],
    ['GET', '/api/v1/chamber/status'],
    ['GET', '/api/v1/attestation?nonce=00000000000000000000000000000000'],
    ['GET', '/api/openapi.json'],
    ['GET', '/metrics'],
    ['GET', '/'],
    ['GET', '/%2Fupcheck'],
    ['GET', '/./upcheck'],
    ['GET', '/upcheck/../api/v1/eth2/publicKeys'],
    ['GET', '/constructor'],
    ['GET', '/__proto__'],
    ['POST', '/upcheck'],
    ['PUT', '/healthcheck'],
  ])('has nothing at %s %s, and says where it is', async (method, path) => {
    const headers = { authorization: 'Bearer test-token', 'x-request-id': 'mine' };
    const answer = await ask(path, { method, headers, ...(method === 'GET' ? {} : { body: '{}' }) });
    expect(answer).toMatchObject({ status: 404, headers: { 'x-request-id': 'mine', connection: 'close' } });
    expect(JSON.parse(answer.body)).toEqual({
      code: 404,
      reason: 'not_found',
      message: expect.stringContaining('needs the RA-TLS listener'),
      request_id: 'mine',
    });
    expect(counted).toEqual(['unknown 404']);
  });

  it('answers what is not HTTP in the shape of every other error', async () => {
    const socket = await unixTransport(folder, 'parent').connect(PORT);
    socket.write('\0\r\n\r\n');
    socket.on('end', () => socket.end());
    const answer = Buffer.concat(await Array.fromAsync(socket as AsyncIterable<Buffer>)).toString();
    expect(answer).toContain('"reason":"malformed_request"');
    await expect.poll(() => listener.connections()).toBe(0);
  });

  it('has a limit of connections, and room again when one ends', async () => {
    const parent = unixTransport(folder, 'parent');
    const held = await Promise.all(Array.from({ length: MAX_PROBE_CONNECTIONS }, () => parent.connect(PORT)));
    await expect.poll(() => listener.connections()).toBe(MAX_PROBE_CONNECTIONS);
    const next = await parent.connect(PORT);
    next.on('error', () => undefined);
    next.on('end', () => next.end());
    next.resume();
    await once(next, 'close');
    for (const socket of held) socket.destroy();
    await expect.poll(() => listener.connections()).toBe(0);
    expect((await ask('/upcheck')).status).toBe(200);
  });
});

it.each(['/upcheck', '/healthcheck'])('HEAD %s has the status and the headers of GET', async (path) => {
  const [got, head] = [await ask(path), await ask(path, { method: 'HEAD' })];
  expect({ ...head.headers, date: '' }).toEqual({ ...got.headers, date: '' });
  expect([head.status, head.body, head.headers['content-length']]).toEqual([200, '', String(got.body.length)]);
});

it.each(['', 'GET /metrics HTTP/1.1\r\n'])('metrics cut off who does not get as far as a request: %j', async (text) => {
  const source = { render: async () => ({ contentType: 'text/plain', body: '' }) };
  const metrics = await listenMetricsOnTransport(
    source,
    { transport: unixTransport(folder, 'enclave'), port: 3000 },
    20,
  );
  expect(await dribble(3000, text)).toBe(true);
  await close(metrics);
});

/** Sends this, then a byte now and then, until the connection is cut. */
async function dribble(port: number, text: string): Promise<boolean> {
  const socket = await unixTransport(folder, 'parent').connect(port);
  socket.on('error', () => undefined).on('end', () => socket.end());
  socket.resume().write(text);
  const bytes = setInterval(() => text !== '' && socket.writable && socket.write('x'), 5);
  await closed(socket);
  clearInterval(bytes);
  return socket.closed;
}

it('metrics over a transport are metrics, and nothing else', async () => {
  const source = { render: async () => ({ contentType: 'text/plain', body: 'svc_up 1\n' }) };
  const metrics = await listenMetricsOnTransport(source, { transport: unixTransport(folder, 'enclave'), port: 3000 });
  expect(await ask('/metrics', {}, 3000)).toMatchObject({ status: 200, body: 'svc_up 1\n' });
  expect(await ask('/upcheck', {}, 3000)).toMatchObject({ status: 404 });
  await expect.poll(() => metrics.connections()).toBe(0);
  await close(metrics);
});
