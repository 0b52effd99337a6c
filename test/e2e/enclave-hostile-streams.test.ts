// A hostile parent in the streams themselves (enclave-hostile-parent.test.ts has what it hands over): it rewrites KMS's
// answers, cuts and slows what it carries, sends garbage, opens thousands of connections. Nothing is signed twice, and
// the enclave goes on when it may.

import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { TransportListener } from '../../signer/native/transport.ts';
import { type AttestedClient, attested, registersOf } from '../support/attested-client.ts';
import { attestation, call, rootOf } from '../support/requests.ts';
import { sized, someOf } from '../support/scale.ts';
import { dial } from '../support/streams.ts';
import {
  connectAttested,
  enclave,
  end,
  eventually,
  expectNoSecrets,
  opened,
  parent,
  powerOn,
  signs,
  spareKeys,
  start,
  target,
  token,
  world,
} from './hostile-parent-set-up.ts';

describe('answers in the place of KMS', () => {
  afterEach(end);

  /** In front of the real stand-in, changing what it answers to Decrypt. */
  async function forger(change: (answer: Record<string, unknown>, earlier: Record<string, unknown>[]) => unknown) {
    const earlier: Record<string, unknown>[] = [];
    const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
      const headers = { ...(request.headers as Record<string, string>) };
      for (const name of ['connection', 'content-length', 'host', 'transfer-encoding', 'expect']) delete headers[name];
      const answer = await fetch(world.custody.kms.endpoint, { method: 'POST', headers, body });
      const json = (await answer.json()) as Record<string, unknown>;
      const isDecrypt = request.headers['x-amz-target'] === 'TrentService.Decrypt' && answer.ok;
      response.writeHead(answer.status, { 'content-type': 'application/x-amz-json-1.1' });
      response.end(JSON.stringify(isDecrypt ? change(json, earlier) : json));
      if (isDecrypt) earlier.push(json);
    };
    const server = createServer((request, response) => void forward(request, response));
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP listener has an address');
    opened.push({
      close: () => {
        server.closeAllConnections();
        return new Promise((resolve) => void server.close(resolve));
      },
    });
    return carryTo(address.port);
  }

  const changes: readonly (readonly [string, Parameters<typeof forger>[0]])[] = [
    [
      'the envelope of another share',
      (answer, earlier) => ({
        ...answer,
        CiphertextForRecipient: (earlier[0] ?? { CiphertextForRecipient: 'AAAA' })['CiphertextForRecipient'],
      }),
    ],
    [
      'an envelope with one bit changed',
      (answer) => {
        const bytes = Buffer.from(String(answer['CiphertextForRecipient']), 'base64');
        const inContent = bytes.length - 24;
        bytes[inContent] = (bytes[inContent] ?? 0) ^ 1;
        return { ...answer, CiphertextForRecipient: bytes.toString('base64') };
      },
    ],
  ];

  it.each(someOf(changes, 1))('%s unseals nothing', async (_, change) => {
    const { parent, enclave } = await powerOn({ instead: { 8002: await forger(change) } }, { patienceMs: 1000 });
    await expect(parent.said('ready')).rejects.toThrow(/the start failed/);
    await expect(attested(parent.tlsUrl, world.pki, registersOf(enclave.nsm))).rejects.toThrow();
    expectNoSecrets(JSON.stringify(parent.lines), enclave.console());
  });
});

describe('what the parent carries', () => {
  afterEach(end);

  it('cut and slow streams cost answers, never a second vote: what was signed is recorded, and it goes on afterwards', async () => {
    let weather: 'fair' | 'cut' | 'slow' = 'fair';
    const dynamodbPort = Number(new URL(world.custody.dynamodb.endpoint).port);
    const open = new Set<Socket>();
    let connections = 0;
    const carry = (stream: Socket): void => {
      connections += 1;
      const upstream = connect({ port: dynamodbPort, host: '127.0.0.1', allowHalfOpen: true });
      open.add(stream);
      stream.once('close', () => open.delete(stream));
      let left = 200 + ((connections * 7919) % 3000); // bytes until it breaks, another number each time
      for (const [from, to] of [
        [stream, upstream],
        [upstream, stream],
      ] as const) {
        from.on('error', () => undefined);
        from.on('close', () => to.destroy());
        from.on('end', () => to.end());
        from.on('data', (bytes: Buffer) => {
          left -= bytes.length;
          if (weather === 'cut' && left < 0) {
            to.write(bytes.subarray(0, bytes.length >> 1));
            stream.destroy();
            upstream.destroy();
          } else if (weather === 'slow') setTimeout(() => to.write(bytes), 30);
          else to.write(bytes);
        });
      }
    };
    const client = await start({ instead: { 8001: carry } });
    await signs(client);
    const signed = { cut: 0, slow: 0 };
    const keys = spareKeys.values();
    for (const next of ['cut', 'slow'] as const) {
      weather = next;
      for (const stream of open) stream.destroy();
      for (let round = 0; round < sized(4, 8); round++) {
        const key = keys.next().value;
        // Four different votes of one key for one target, at once: at most one of them may ever be signed.
        const votes = Array.from({ length: 4 }, (_, index) =>
          attestation({ source: target - 1, target, head: rootOf(0x40 + index) }),
        );
        const answers = await Promise.all(
          votes.map((body) => client.call(`/api/v1/eth2/sign/${key}`, { token, body })),
        );
        const count = answers.filter(({ status }) => status === 200).length;
        expect(count).toBeLessThanOrEqual(1);
        signed[next] += count;
        expect(answers.every(({ status }) => [200, 412, 503].includes(status))).toBe(true);
      }
    }
    expect(signed.slow).toBeGreaterThan(0); // or none would be at most one
    weather = 'fair';
    for (const stream of open) stream.destroy();
    await eventually(async () => signs(client));
  });
});

describe('a parent that carries as it should', () => {
  /** Of a hundred connections to each of two listeners: more in all than the 512 that the signer takes over TLS. */
  const BATCHES = sized(7, 10);

  let client: AttestedClient;
  let strays = 0;
  beforeAll(async () => {
    const others: TransportListener[] = [];
    for (const port of [22, 80, 443, 7003, 8000, 8003, 9000, 9443]) {
      others.push(
        await world.streams.listen(port, (socket) => {
          strays += 1;
          socket.destroy();
        }),
      );
    }
    opened.push({ close: () => Promise.all(others.map((listener) => listener.close())) });
    client = await start();
  });
  afterAll(end);

  it('has no way out but the declared ones: nothing else is ever asked for, or has a name', async () => {
    await signs(client);
    expect(strays).toBe(0);
    const names = readFileSync(join(world.folder, 'hosts'), 'utf8').trimEnd().split('\n');
    expect(names.map((line) => line.split(' ')[1])).toEqual([
      'localhost',
      'dynamodb.eu-central-1.amazonaws.com',
      'kms.eu-central-1.amazonaws.com',
    ]);
  });

  it('sends garbage, half a PROXY header, none, an endless one: cut off, while a client is served', async () => {
    const bad = [
      Buffer.alloc(2000, 0xff),
      Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.5 5000 9443\r\n'),
      Buffer.from('GET /api/v1/chamber/status HTTP/1.1\r\nHost: x\r\n\r\n'),
      Buffer.from('0d0a0d0a000d0a515549540a2111ffff', 'hex'),
      Buffer.from('0d0a0d0a000d0a515549540a3111000c', 'hex'),
      Buffer.from('0d0a0d0a000d0a515549540a2111000c7f0000017f00000113882', 'hex'),
    ];
    const streams = await Promise.all(Array.from({ length: 120 }, () => world.streams.connect(9443)));
    const closed = streams.map((stream, index) => {
      stream.on('error', () => undefined);
      stream.resume();
      stream.write(bad[index % bad.length] ?? bad[0] ?? Buffer.alloc(1));
      return (
        stream.closed ||
        new Promise((resolve) => void stream.once('close', resolve).once('end', () => stream.destroy()))
      );
    });
    await signs(client);
    await Promise.all(closed);
    await signs(client);
    await signs(await connectAttested());
    const refusals = async () => (await call(parent?.metricsUrl ?? '', { token: null })).text;
    await expect.poll(refusals).toMatch(/^svc_connections_refused_total\{reason="proxy_header"\} 120$/m);
  });

  it(`brings ${200 * BATCHES} connections at once: who is served stays served, then the next is`, async () => {
    const listeners = [parent?.tlsUrl, parent?.probesUrl].map((url = '') => new URL(url));
    const crowd: Socket[] = [];
    for (let batch = 0; batch < BATCHES; batch++) {
      const arrivals = listeners.flatMap(({ port, hostname }) =>
        Array.from({ length: 100 }, () => dial(Number(port), hostname).catch(() => undefined)),
      );
      crowd.push(...(await Promise.all(arrivals)).filter((socket) => socket !== undefined));
      await signs(client);
    }
    expect(crowd.length).toBe(200 * BATCHES);
    for (const socket of crowd) socket.write('?');
    await signs(client);
    for (const socket of crowd) socket.destroy();
    await eventually(async () => {
      await signs(await connectAttested());
      expect((await call(`${parent?.probesUrl}/upcheck`, { token: null })).text).toBe('OK');
    });
    expectNoSecrets(JSON.stringify(parent?.lines), enclave?.console() ?? '');
  });
});

function carryTo(port: number): (stream: Socket) => void {
  return (stream) => {
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    for (const [from, to] of [
      [stream, upstream],
      [upstream, stream],
    ] as const) {
      from.on('error', () => undefined);
      from.on('close', () => to.destroy());
      from.pipe(to);
    }
  };
}
