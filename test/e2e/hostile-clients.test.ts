// Clients that misbehave on purpose, on raw sockets: what they hold is given back, what they did is on record, and the
// others are served meanwhile.

import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { MAX_UNANSWERED_REQUESTS } from '../../signer/http/open-requests.ts';
import { deploy } from '../support/deployment.ts';
import { lacking } from '../support/needs.ts';
import { attestation, call, randaoReveal, signCall, TEST_TOKEN } from '../support/requests.ts';

const deployment = deploy(1);
const key = deployment.keys[0]?.publicKey ?? '';
let signer: RunningSigner;
beforeAll(async () => {
  signer = await deployment.start();
});
afterAll(() => signer.stop());

interface RawClient {
  readonly socket: Socket;
  received(): string;
  readonly closed: Promise<void>;
}

function open(url = signer.url): Promise<RawClient> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
      resolve({ socket, received: () => text, closed }),
    );
    socket.setEncoding('latin1').on('data', (chunk: string) => (text += chunk));
    socket.once('error', reject);
    const closed = new Promise<void>((done) => socket.once('close', () => done()));
  });
}

function post(body: string, options: { token?: string; length?: number; id?: string } = {}): string {
  const { token = TEST_TOKEN, length = Buffer.byteLength(body), id = 'x' } = options;
  return (
    `POST /api/v1/eth2/sign/${key} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
    `X-Request-Id: ${id}\r\nContent-Length: ${length}\r\n\r\n${body}`
  );
}

describe('a client that closes after its request', () => {
  it('leaves its audit line, and nothing of what it held', async () => {
    const padding = 'x'.repeat(2_000_000);
    for (let round = 0; round < 140; round += 1) {
      const { socket } = await open();
      const body = JSON.stringify({ ...attestation({ source: round, target: round + 1 }), padding });
      socket.write(post(body, { id: `gone-${round}` }), () => socket.destroy());
    }
    // More was sent than the budget for bodies holds (256 MiB): without being given back it would be used up by now.
    for (let round = 0; round < 140; round += 1) await signer.logged('request', { request_id: `gone-${round}` });
    expect((await signCall(signer.url, key, randaoReveal())).status).toBe(200);
    const line = await signer.logged('request', { request_id: 'gone-139' });
    expect(line).toMatchObject({ accessor: 'static:0', client_ip: '127.0.0.1', public_key: key });
    expect(signer.log.filter((entry) => entry['request_id'] === 'gone-139')).toHaveLength(1);
  });
});

describe('a client without credentials', () => {
  it('holds nothing of the budget for bodies, however many bodies it announces', async () => {
    const clients = await Promise.all(Array.from({ length: 140 }, () => open()));
    for (const { socket } of clients) socket.write(post('', { token: 'sr_client_unknown_unknown', length: 2_000_000 }));
    expect((await signCall(signer.url, key, randaoReveal(13))).status).toBe(200);
    for (const { socket } of clients) socket.destroy();
  });

  it('is cut when it queues up requests on one connection', async () => {
    const { socket, closed, received } = await open();
    socket.write('GET /api/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2000));
    await closed;
    expect(received().split('HTTP/1.1 200').length - 1).toBeLessThanOrEqual(MAX_UNANSWERED_REQUESTS);
    expect((await call(`${signer.url}/upcheck`)).text).toBe('OK');
  });

  it('gets one scrape of the metrics a connection', async () => {
    const { socket, closed, received } = await open(signer.metricsUrl);
    socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(500));
    await closed;
    expect(received().match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  });

  it('is told in the shape of every other error that its request is none', async () => {
    const { socket, closed, received } = await open();
    socket.write('NONSENSE\r\n\r\n');
    await closed;
    expect(received()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(JSON.parse(received().split('\r\n\r\n')[1] ?? '')).toMatchObject({ code: 400, reason: 'malformed_request' });
  });

  it('gets 400 and its request id for a path that is none', async () => {
    for (const path of ['%zz', 'x'.repeat(300)]) {
      const { socket, received } = await open();
      socket.write(
        `GET /api/v1/eth2/sign/${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: odd\r\nConnection: close\r\n\r\n`,
      );
      await new Promise((resolve) => socket.once('close', resolve));
      expect(received()).toMatch(/x-request-id: odd/i);
      expect(received()).toMatch(/"reason":"(malformed_parameter|not_found)"/);
    }
  });
});

describe.skipIf(lacking('Linux'))('idle connections', () => {
  it('more than the process may have files open for: a newcomer gets the place of the oldest, and signs', async () => {
    const other = deploy(1);
    const FILES = 700;
    const program = [
      'sh',
      '-c',
      `ulimit -n ${FILES} && exec "$0" "$@"`,
      join(import.meta.dirname, '../../bin/strongroom'),
    ] as const;
    const small = await other.start({ program, config: { server: { mlock: 'off' } } });
    const warned = { module: 'server', open_files: FILES, connections: FILES - 512 };
    expect(small.log).toContainEqual(expect.objectContaining(warned));
    const idle: RawClient[] = [];
    for (let client = 0; client < FILES + 100; client += 1) idle.push(await open(small.url));
    expect((await signCall(small.url, other.keys[0]?.publicKey ?? '', randaoReveal())).status).toBe(200);
    for (const { socket } of idle) socket.destroy();
    await small.stop();
  });
});

describe('a web page', () => {
  it('of another origin cannot use the network position of its reader', async () => {
    const answer = await signCall(signer.url, key, randaoReveal(), { headers: { origin: 'https://evil.example' } });
    expect(answer.json).toMatchObject({ code: 403, reason: 'foreign_origin' });
    expect(answer.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('of the signer’s own host can, and so can whoever names an origin and is no browser', async () => {
    const headers = { origin: new URL(signer.url).origin };
    expect((await signCall(signer.url, key, randaoReveal(), { headers })).status).toBe(200);
  });
});

describe('another user of the machine', () => {
  it('cannot open a debugger in the signer with a signal', async () => {
    process.kill(signer.pid, 'SIGUSR1');
    expect((await signCall(signer.url, key, randaoReveal(14))).status).toBe(200);
    expect(signer.output()).not.toMatch(/Debugger listening/);
  });
});
