// The tunnel for validator clients: what reaches the enclave through it, over which connections, and what ends it. The
// enclave is the one of ratls-server.ts; the tunnel is the program's own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { AttestationFailure } from '../../operator/attestation/attestation-failure.ts';
import type { TunnelOptions } from '../../operator/tunnel/tunnel.ts';
import { testPcr } from '../../rehearsal/nsm/emulator.ts';
import { createNsmPki } from '../../rehearsal/nsm/pki.ts';
import { type Answerer, answerJson } from './fixture-signer.ts';
import { type Enclave, makeEnclave, type RatlsServer, startRatlsServer } from './ratls-server.ts';
import { ask, open, type RunningTunnel, startTunnel as startTunnelTo } from './running-tunnel.ts';

const TOKEN = 'sr_client_tunnel_test';
const PCR0 = `0=${testPcr(0).toString('hex')}`;
const HOUR_MS = 3_600_000;
/** As operator/commands/tunnel.ts sets it. */
const COMMAND_MAX_BODY_BYTES = 64 * 1024 * 1024;
const QUICK = { unverified: { firstMs: 2, mostMs: 10 } };
const STRONGROOM = join(import.meta.dirname, '../../bin/strongroom');

const pki = await createNsmPki();
const enclave = await makeEnclave({ pki });
let ending: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const end of ending.toReversed()) await end();
  ending = [];
});

const echo: Answerer = (received, response, { headers }) => answerJson(response, 200, { ...received, headers });

async function startServer(answer: Answerer = echo, of: Enclave = enclave, port = 0): Promise<RatlsServer> {
  const server = await startRatlsServer(of.identity, answer, of.nonceRoute, port);
  let open = true;
  ending.push(async () => open && server.close());
  return {
    ...server,
    close: () => {
      open = false;
      return server.close();
    },
  };
}

async function startTunnel(
  { url }: { readonly url: string },
  options: Partial<TunnelOptions> = {},
  now = Date.now,
): Promise<RunningTunnel> {
  const tunnel = await startTunnelTo({ url, token: TOKEN, rootFingerprint: pki.rootFingerprint, now }, options);
  ending.push(async () => {
    tunnel.stop();
    await tunnel.ended;
  });
  return tunnel;
}

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
    const tunnel = await startTunnel(server, { timeoutSeconds: 1 });
    expect(await ask(tunnel, '/broken', { method: 'POST' }, '{}')).toMatchObject({
      status: 502,
      json: { reason: 'enclave_failed' },
    });
    expect(await ask(tunnel, '/silent')).toMatchObject({ status: 504, json: { reason: 'enclave_timeout' } });
    // Nothing was asked twice.
    expect(server.received.map(({ path }) => path)).toEqual(['/broken', '/silent']);
  });
});

describe('an enclave that is not there', () => {
  it('is waited for: 503 meanwhile, and served again when it is back', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    expect((await ask(tunnel, '/')).status).toBe(200);
    await server.close();
    const down = await ask(tunnel, '/');
    expect([502, 503]).toContain(down.status);
    expect(await ask(tunnel, '/')).toMatchObject({ status: 503, json: { reason: 'enclave_unreachable' } });
    const again = tunnel.logged('is verified again');
    await startServer(echo, enclave, Number(new URL(server.url).port));
    await again;
    expect((await ask(tunnel, '/')).status).toBe(200);
  });

  it('is waited for from the start', async () => {
    const port = await freePort();
    const tunnel = await startTunnel({ url: `https://127.0.0.1:${port}` });
    expect(await ask(tunnel, '/')).toMatchObject({ status: 503, json: { reason: 'enclave_unreachable' } });
    const verified = tunnel.logged('is verified again');
    await startServer(echo, enclave, port);
    await verified;
    expect((await ask(tunnel, '/')).status).toBe(200);
  });
});

describe('an enclave that is another one', () => {
  it('from the start: the tunnel never listens, and no token is sent', async () => {
    const server = await startServer(echo, await makeEnclave({ pki, pcrs: { 0: Buffer.alloc(48, 9) } }));
    const tunnel = await startTunnel(server);
    expect(tunnel.url).toBe('');
    expect(await tunnel.ended).toMatchObject({ exitCode: 6, failures: [{ code: 'wrong_pcr', pcr: 0 }] });
    expect(server.bytes()).toBe('');
  });

  it.each([
    ['another image', 6, 'wrong_pcr', () => makeEnclave({ pki, pcrs: { 0: Buffer.alloc(48, 9) } })],
    ['another authority', 5, 'untrusted_root', async () => makeEnclave({ pki: await createNsmPki() })],
  ] as const)(
    'later: %s is refused, and asked again; five times in a row end everything',
    async (_, exitCode, code, make) => {
      const server = await startServer();
      const tunnel = await startTunnel(server, { pauses: QUICK });
      expect((await ask(tunnel, '/')).status).toBe(200);
      server.rotate(await make());
      dropAll(server);
      const before = server.received.length;
      await ask(tunnel, '/secret').catch(() => undefined); // refused, or cut off with the listener
      const failure = await tunnel.ended;
      expect(failure).toBeInstanceOf(AttestationFailure);
      expect(failure).toMatchObject({ exitCode });
      const refusals = tunnel.lines.filter((line) => line.includes('is not verified'));
      expect(refusals.map((line) => /(\d) of 5 in a row/.exec(line)?.[1])).toEqual(['1', '2', '3', '4']);
      expect(refusals[0]).toContain(`(${code}: `);
      expect(server.received).toHaveLength(before);
      await expect(ask(tunnel, '/')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    },
  );

  it('for a moment: what needs a connection is refused meanwhile, nothing is sent, and it is served again', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server, { pauses: QUICK });
    for (let turn = 0; turn < 4; turn++) {
      const refused = tunnel.logged('1 of 5 in a row');
      server.rotate(await makeEnclave({ pki, pcrs: { 0: Buffer.alloc(48, 9) } }));
      dropAll(server);
      const reply = await ask(tunnel, `/secret/${turn}`);
      expect(reply).toMatchObject({ status: 503, json: { reason: 'enclave_unverified' } });
      await refused;
      const again = tunnel.logged('is verified again');
      server.rotate(enclave);
      await again;
      expect((await ask(tunnel, `/${turn}`)).status).toBe(200);
    }
    expect(server.received.map(({ path }) => path)).toEqual(['/0', '/1', '/2', '/3']);
  });

  it('a rotated certificate of the same image is verified and used', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server);
    await ask(tunnel, '/');
    const next = await makeEnclave({ pki });
    server.rotate(next);
    dropAll(server);
    expect((await ask(tunnel, '/')).status).toBe(200);
    expect(server.connections).toHaveLength(2);
    expect(server.bytes().match(/GET \/api\/v1\/attestation/g)).toHaveLength(2);
  });

  it('a connection whose evidence has ended is not used again', async () => {
    const server = await startServer();
    let skewMs = 0;
    const tunnel = await startTunnel(server, { pauses: QUICK }, () => Date.now() + skewMs);
    await ask(tunnel, '/');
    skewMs = 4 * HOUR_MS;
    await ask(tunnel, '/late').catch(() => undefined);
    expect(await tunnel.ended).toMatchObject({ exitCode: 5, failures: [{ code: 'expired' }] });
    expect(server.received.map(({ path }) => path)).toEqual(['/']);
  });
});

describe('a clock that is behind', () => {
  it('by five seconds is no reason to refuse, nor by almost five minutes', async () => {
    for (const behindMs of [5000, 290_000]) {
      const tunnel = await startTunnel(await startServer(), {}, () => Date.now() - behindMs);
      expect((await ask(tunnel, '/')).status).toBe(200);
    }
  });

  it('by more is waited for, without end, from the start and later: nothing is sent meanwhile', async () => {
    const server = await startServer();
    let behindMs = 400_000;
    const tunnel = await startTunnel(server, { pauses: QUICK }, () => Date.now() - behindMs);
    const unverified = () => tunnel.lines.filter((line) => /not_yet_valid: .*look at the clocks/.test(line)).length;
    await expect.poll(unverified).toBeGreaterThan(6);
    expect(await ask(tunnel, '/')).toMatchObject({ status: 503, json: { reason: 'enclave_unverified' } });
    expect(server.bytes()).not.toContain(TOKEN);
    const again = tunnel.logged('is verified again');
    behindMs = 0;
    await again;
    expect((await ask(tunnel, '/')).status).toBe(200);
  });
});

describe('a connection that nobody uses', () => {
  it('is kept warm: not asked for its evidence again, and without the token', async () => {
    const server = await startServer();
    const tunnel = await startTunnel(server, { idleMs: 20 });
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
    const tunnel = await startTunnel(server, { idleMs: 20 });
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

describe('the program', () => {
  it('stops when it is told: what is under way is finished, nothing new is taken', async () => {
    const { promise: arrived, resolve: onArrived } = Promise.withResolvers<() => void>();
    const server = await startServer((_, response) => onArrived(() => answerJson(response, 200, { late: true })));
    const tunnel = await startTunnel(server);
    const reply = ask(tunnel, '/');
    const answer = await arrived;
    const stopping = tunnel.logged('stopping');
    tunnel.stop();
    await stopping;
    await expect(ask(tunnel, '/new')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    answer();
    expect(await reply).toMatchObject({ status: 200, json: { late: true } });
    expect(await tunnel.ended).toBeUndefined();
  });

  it('listens while the enclave is not there, and ends with 0 on SIGTERM', async () => {
    const url = `https://127.0.0.1:${await freePort()}`;
    const [port, other] = [await freePort(), await freePort()];
    const { child, stderr } = run(
      '--signer-url',
      url,
      '--pcr',
      PCR0,
      '--any-configuration',
      '--token',
      'env:MINE',
      '--listen',
      `127.0.0.1:${port}`,
    );
    await stderr('listening on');
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(other).not.toBe(port);
  });

  it.each<[string, string[], string]>([
    [
      'an address for others',
      ['--pcr', PCR0, '--any-configuration', '--token', 'env:MINE', '--listen', '0.0.0.0:9000'],
      'can be reached from other machines',
    ],
    [
      'no address',
      ['--pcr', PCR0, '--any-configuration', '--token', 'env:MINE', '--listen', 'here'],
      'is not an address and a port',
    ],
    ['no reference values', ['--token', 'env:MINE'], 'say which image with --pcrs or --pcr'],
    ['any configuration', ['--pcr', PCR0, '--token', 'env:MINE'], 'PCR16 is missing'],
    ['no token', ['--pcr', PCR0, '--any-configuration'], 'a tunnel adds a token'],
    [
      'no limit',
      ['--pcr', PCR0, '--any-configuration', '--token', 'env:MINE', '--max-connections', '0'],
      '--max-connections is a whole number',
    ],
  ])('wrong usage: %s', async (_, args, message) => {
    const { child, stderr } = run(...args);
    const [code] = await once(child, 'exit');
    await stderr(message);
    expect(code).toBe(1);
  });
});

function run(...args: string[]) {
  const env = { PATH: process.env['PATH'], HOME: '/nonexistent', MINE: TOKEN };
  const child = spawn(STRONGROOM, ['operator', 'tunnel', ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  ending.push(async () => child.kill('SIGKILL'));
  let written = '';
  let wake = (): void => undefined;
  child.stderr.on('data', (chunk: Buffer) => {
    written += chunk;
    wake();
  });
  const stderr = async (words: string): Promise<void> => {
    while (!written.includes(words))
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    expect(written).not.toContain(TOKEN);
  };
  return { child, stderr };
}

function dropAll(server: RatlsServer): void {
  for (const socket of server.connections) socket.destroy();
}

async function freePort(): Promise<number> {
  const server = createServer((socket: Socket) => socket.destroy()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}
