// Who does not get as far as a request is cut off, on the listeners of an ordinary machine: by silence, by a byte now
// and then, before TLS and in it. The clients only wait for their end; the limits here are short, those of a signer are
// the defaults.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { createStaticAuthenticator } from '../../../signer/auth/static.ts';
import { listenMetrics, listenPlain, listenTls } from '../../../signer/http/listeners/ports.ts';
import { CONNECTION_LIMITS } from '../../../signer/http/places.ts';
import { answerClientError } from '../../../signer/http/refusals.ts';
import { keylessApp } from '../../support/auth-app.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { closed } from '../../support/streams.ts';

const SHORT_MS = 20;
/** Many times the pause between two bytes: only the limit of the whole ends it. */
const LONG_MS = 300;
const HOST = '127.0.0.1';
const HEADERS = 'GET /upcheck HTTP/1.1\r\nHost: x\r\n';

let folder: string;
let app: FastifyInstance;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'connection-limits-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function openApp(headersTimeoutMs?: number): Promise<FastifyInstance> {
  const authenticator = createStaticAuthenticator({ policies: [], anonymousPolicies: [], tokens: [] });
  const http = headersTimeoutMs === undefined ? {} : { headersTimeoutMs };
  return keylessApp({ authenticator, clock: systemClock, log: recordingLog() }, http);
}

/** Sends a byte of `text` now and then, and `x` behind it; nothing when it is empty. Resolves when it is cut off. */
async function isCutOff(socket: Socket, text: string): Promise<boolean> {
  socket.on('error', () => undefined).resume();
  let sent = 0;
  const bytes = setInterval(() => {
    if (text === '' || !socket.writable) return;
    socket.write(text[sent] ?? 'x');
    sent += 1;
  }, SHORT_MS / 4);
  await closed(socket);
  clearInterval(bytes);
  return socket.closed;
}

async function handshaken(port: number): Promise<TLSSocket> {
  const socket = tlsConnect({ port, host: HOST, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}

describe.each([
  ['nothing', ''],
  ['a byte now and then', HEADERS],
])('a client that sends %s', (_what, text) => {
  let secure: Server | undefined;
  afterEach(async () => {
    secure?.close();
    secure = undefined;
    await app.close();
  });

  it('to the plain listener is cut off', async () => {
    app = await openApp(SHORT_MS);
    const { address } = await listenPlain(app, { host: HOST, port: 0 });
    expect(await isCutOff(connect(address.port, HOST), text)).toBe(true);
  });

  it('to the metrics listener is cut off', async () => {
    app = await openApp();
    const source = { render: async () => ({ contentType: 'text/plain', body: '' }) };
    const server = await listenMetrics(source, { host: HOST, port: 0 }, LONG_MS);
    expect(await isCutOff(connect((server.address() as AddressInfo).port, HOST), text)).toBe(true);
    server.close();
  });

  describe('to the TLS listener', () => {
    const listen = async (limits: { readonly handshakeTimeoutMs?: number; readonly headersTimeoutMs?: number }) => {
      const { cert, key } = makeCertificate(folder, 'tls');
      app = await openApp(limits.headersTimeoutMs);
      const secureContext = { cert: readFileSync(cert), key: readFileSync(key) };
      const { handshakeTimeoutMs = CONNECTION_LIMITS.handshakeTimeoutMs } = limits;
      const options = { host: HOST, port: 0, maxConnections: 1, secureContext, handshakeTimeoutMs };
      const { server, address } = await listenTls(app, options);
      secure = server;
      return address.port;
    };

    it('instead of a handshake is cut off', async () => {
      const port = await listen({ handshakeTimeoutMs: SHORT_MS });
      expect(await isCutOff(connect(port, HOST), text)).toBe(true);
    });

    it('after its handshake is cut off, and leaves its place to the next', async () => {
      const port = await listen({ headersTimeoutMs: SHORT_MS });
      expect(await isCutOff(await handshaken(port), text)).toBe(true);
      expect(await isCutOff(await handshaken(port), text)).toBe(true);
    });
  });
});

describe('the limits of a signer', () => {
  beforeEach(async () => {
    app = await openApp();
  });
  afterEach(() => app.close());

  it('are some seconds for both, on the plain listener too', () => {
    expect(CONNECTION_LIMITS).toEqual({ handshakeTimeoutMs: 10_000, headersTimeoutMs: 15_000 });
    expect(app.server.headersTimeout).toBe(CONNECTION_LIMITS.headersTimeoutMs);
  });

  it('hold for every address that a name stands for: there is one', async () => {
    await listenPlain(app, { host: 'localhost', port: 0 });
    expect(app.addresses()).toHaveLength(1);
  });
});

describe('a connection that is late', () => {
  const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });

  it.each([
    ['is told so when it has begun a request', 'GET', /^HTTP\/1\.1 503 .*"reason":"request_timeout"/s],
    ['is closed without a word when it has sent nothing', '', /^$/],
  ])('%s', async (_what, sent, told) => {
    const server = createServer((socket) => {
      if (sent === '') answerClientError(late, socket);
      else socket.once('data', () => answerClientError(late, socket));
    });
    server.listen(0, HOST);
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, HOST);
    if (sent !== '') client.write(sent);
    expect(Buffer.concat(await Array.fromAsync(client as AsyncIterable<Buffer>)).toString()).toMatch(told);
    server.close();
  });
});
