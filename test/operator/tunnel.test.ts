// The tunnel for validator clients: what reaches the enclave through it, over which connections, and what ends it. The
// enclave is the one of ratls-server.ts; the tunnel is the program's own.

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { answerJson } from './fixture-signer.ts';
import { ask, open } from './running-tunnel.ts';
import { dropAll, startServer, startTunnel, TOKEN } from './tunnel-set-up.ts';

/** As operator/commands/tunnel.ts sets it. */
const COMMAND_MAX_BODY_BYTES = 64 * 1024 * 1024;

describe('a request', () => {
  it('reaches the enclave with the token of the tunnel, and with nothing that is not for it', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    const headers = {
      ...{ authorization: 'Bearer of-the-client', accept: 'text/plain', 'x-request-id': 'request-7' },
      ...{ 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.9', te: 'trailers', cookie: 'a=b' },
      ...{ connection: 'x-mine', 'x-mine': 'hop' },
    };
    const reply = await ask(
      tunnel,
      '/api/v1/eth2/sign/0xab?x=1',
      { method: 'POST', headers },
      '{"type":"ATTESTATION"}',
    );
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({
      method: 'POST',
      path: '/api/v1/eth2/sign/0xab?x=1',
      body: '{"type":"ATTESTATION"}',
    });
    expect(reply.json['headers']).toEqual({
      host: new URL(server.url).host,
      authorization: `Bearer ${TOKEN}`,
      connection: 'keep-alive',
      ...{ accept: 'text/plain', 'x-request-id': 'request-7', 'content-type': 'application/json' },
      'content-length': '22',
    });
    expect(tunnel.lines.join('\n')).not.toContain(TOKEN);
  });

  it('of any method is answered as the enclave answers it, also without a body', async () => {
    const server = await startServer(({ method, body }, response) => {
      response.writeHead(method === 'DELETE' ? 404 : 200, { 'x-answer': 'kept', connection: 'x-hop', 'x-hop': '1' });
      response.end(JSON.stringify({ method, body }));
    });
    const tunnel = await startTunnel(server);
    const removed = await ask(
      tunnel,
      '/k',
      { method: 'DELETE', headers: { 'transfer-encoding': 'chunked' } },
      '{"a":1}',
    );
    expect(removed).toMatchObject({
      status: 404,
      json: { method: 'DELETE', body: '{"a":1}' },
      headers: { 'x-answer': 'kept' },
    });
    expect(removed.headers['x-hop']).toBeUndefined();
    expect(await ask(tunnel, '/upcheck')).toMatchObject({ status: 200, json: { method: 'GET', body: '' } });
  });

  it('with duplicate slashes reaches the enclave as it is; one in absolute form does not', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    for (const path of ['//api/v1/eth2/sign/0xab', '//other.example/upcheck?x=//'])
      expect((await ask(tunnel, path)).json).toMatchObject({ path, headers: { host: new URL(server.url).host } });
    for (const path of ['http://other.example/upcheck', '*'])
      expect(await ask(tunnel, '/', { path })).toMatchObject({ status: 400, json: { reason: 'malformed_request' } });
  });

  it('for many keys goes through whole, and so does its long answer', async () => {
    const identifiers = Array.from({ length: 2048 }, (_, index) => `0x${String(index).padStart(96, '0')}`);
    const results = identifiers.map((identifier) => ({ identifier, signature: `0x${'ab'.repeat(96)}` }));
    let asked = '';
    const server = await startServer((received, response) => {
      asked = received.body;
      answerJson(response, 200, results);
    });
    const tunnel = await startTunnel(server, { maxBodyBytes: COMMAND_MAX_BODY_BYTES });
    const body = JSON.stringify({ identifiers, signing_request: { type: 'RANDAO_REVEAL' } });
    const headers = { 'content-type': 'application/json' };
    const reply = await ask(tunnel, '/api/v1/eth2/sign', { method: 'POST', headers }, body);
    expect([reply.status, reply.json]).toEqual([200, results]);
    expect(asked).toBe(body);
  });

  it('after another goes over the same connection, verified once', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    for (const path of ['/1', '/2', '/3']) expect((await ask(tunnel, path)).status).toBe(200);
    expect(server.connections).toHaveLength(1);
    expect(server.bytes().match(/GET \/api\/v1\/attestation/g)).toHaveLength(1);
    expect(server.bytes().indexOf('/api/v1/attestation')).toBeLessThan(server.bytes().indexOf(TOKEN));
  });

  it('streams: the client has the beginning of an answer before its end is made', async () => {
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    const server = await startServer((_, response) => {
      response.write('{"first":1,');
      void mayEnd.then(() => response.end('"last":2}'));
    });
    const tunnel = await startTunnel(server);
    const outgoing = open(tunnel, '/');
    outgoing.end();
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    response.setEncoding('utf8');
    expect(await once(response, 'data')).toEqual(['{"first":1,']);
    end();
    expect(await text(response)).toBe('"last":2}');
  });

  it('whose client goes away is ended at the enclave too', async () => {
    const { promise: arrived, resolve: onArrived } = Promise.withResolvers<IncomingMessage>();
    const server = await startServer((_, __, incoming) => onArrived(incoming));
    const tunnel = await startTunnel(server);
    const outgoing = open(tunnel, '/slow', { method: 'POST' });
    outgoing.on('error', () => undefined);
    outgoing.end('{}');
    const { socket } = await arrived;
    const closed = once(socket, 'close');
    outgoing.destroy();
    await closed;
    expect(server.received).toHaveLength(1);
  });

  it('of a web page is refused, by its origin and by the name it used', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { host: 'evil.example' },
    ])
      expect(await ask(tunnel, '/', { headers })).toMatchObject({ status: 403, json: { reason: 'foreign_origin' } });
    expect((await ask(tunnel, '/', { headers: { host: 'localhost:9000' } })).status).toBe(200);
    expect(server.received).toHaveLength(1);
  });

  it('with too large a body is refused, or cut off when its size shows late', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    const body = 'x'.repeat(100_001);
    const stated = await ask(tunnel, '/', { method: 'POST', headers: { 'content-length': body.length } }, body);
    expect(stated).toMatchObject({ status: 413, json: { reason: 'body_too_large' } });
    const late = await ask(tunnel, '/', { method: 'POST', headers: { 'transfer-encoding': 'chunked' } }, body);
    expect(late).toMatchObject({ status: 413, json: { reason: 'body_too_large' } });
    expect(server.received).toEqual([]);
  });

  it('beyond those that wait is refused at once; those who wait get the next connection', async () => {
    let held: (() => void) | undefined;
    const { promise: first, resolve: onFirst } = Promise.withResolvers<void>();
    const server = await startServer((_, response) => {
      const isFirst = held === undefined;
      held ??= () => answerJson(response, 200, {});
      if (!isFirst) answerJson(response, 200, {});
      onFirst();
    });
    const tunnel = await startTunnel(server, { maxConnections: 1, maxWaiting: 1 });
    const one = ask(tunnel, '/1');
    await first;
    const later = [ask(tunnel, '/2'), ask(tunnel, '/3')];
    const busy = { status: 503, json: { reason: 'tunnel_busy' }, headers: { 'retry-after': '1' } };
    expect(await Promise.race(later)).toMatchObject(busy);
    held?.();
    expect((await one).status).toBe(200);
    expect((await Promise.all(later)).map(({ status }) => status).toSorted()).toEqual([200, 503]);
    expect(server.connections).toHaveLength(1);
  });

  it('that the enclave does not answer is given up, and so is one whose connection breaks', async () => {
    const server = await startServer(({ path }, _, incoming) => void (path === '/broken' && incoming.socket.destroy()));
    const tunnel = await startTunnel(server);
    // Only what is never answered is given up soon.
    const impatient = await startTunnel(server, { timeoutSeconds: 3 });
    expect(await ask(tunnel, '/broken', { method: 'POST' }, '{}')).toMatchObject({
      status: 502,
      json: { reason: 'enclave_failed' },
    });
    expect(await ask(impatient, '/silent')).toMatchObject({ status: 504, json: { reason: 'enclave_timeout' } });
    // Nothing was asked twice.
    await expect.poll(() => server.received.map(({ path }) => path)).toEqual(['/broken', '/silent']);
  });
});

describe('the list of keys', () => {
  const LISTS = ['/api/v1/eth2/publicKeys', '//api/v1/eth2/publicKeys/?x'];

  it('is never an error of the tunnel: a client would read it as no keys', async () => {
    const server = await startServer((_, __, incoming) => void incoming.socket.destroy());
    const tunnel = await startTunnel(server, { timeoutSeconds: 3 });
    for (const path of LISTS) await expect(ask(tunnel, path)).rejects.toThrow('socket hang up');
    await expect(ask(tunnel, LISTS[0] ?? '', { headers: { origin: 'https://x.example' } })).rejects.toThrow();
    expect(await ask(tunnel, '/eth/v1/keystores')).toMatchObject({ status: 502, json: { reason: 'enclave_failed' } });
    await server.close();
    for (const path of LISTS) await expect(ask(tunnel, path)).rejects.toThrow('socket hang up');
  });

  it('is what the enclave answers', async () => {
    const tunnel = await startTunnel(await startServer());
    for (const path of LISTS) expect(await ask(tunnel, path)).toMatchObject({ status: 200, json: { path } });
  });
});

describe('a connection that nobody uses', () => {
  it('is kept warm: not asked for its evidence again, and without the token', async () => {
    const server = await startServer();
    // What is asked while it is warmed waits for it.
    const tunnel = await startTunnel(server, { idleMs: 20, maxConnections: 1 });
    await expect.poll(() => server.received.length).toBeGreaterThan(3);
    expect((await ask(tunnel, '/now')).status).toBe(200);
    expect(server.connections).toHaveLength(1);
    expect(server.bytes().match(/GET \/api\/v1\/attestation/g)).toHaveLength(1);
    expect(new Set(server.received.map(({ path }) => path))).toEqual(new Set(['/upcheck', '/now']));
    expect(server.bytes().match(new RegExp(TOKEN, 'g'))).toHaveLength(1);
  });

  it('is closed when there is another', async () => {
    const { promise: both, resolve: onBoth } = Promise.withResolvers<void>();
    const held: (() => void)[] = [];
    const server = await startServer(({ path }, response) => {
      if (path === '/upcheck') return answerJson(response, 200, {});
      held.push(() => answerJson(response, 200, {}));
      if (held.length === 2) onBoth();
    });
    const tunnel = await startTunnel(server, { idleMs: 20, maxConnections: 2 });
    const two = [ask(tunnel, '/1'), ask(tunnel, '/2')];
    await both;
    for (const answer of held) answer();
    await Promise.all(two);
    await expect.poll(() => server.connections.map(({ destroyed }) => destroyed).toSorted()).toEqual([false, true]);
  });

  it('is replaced when the enclave closes it, before anybody asks', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    dropAll(server);
    await expect.poll(() => server.bytes().match(/GET \/api\/v1\/attestation/g)?.length).toBe(2);
    expect((await ask(tunnel, '/')).status).toBe(200);
    expect(server.connections).toHaveLength(2);
  });
});
