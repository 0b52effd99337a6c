// The decoder of what comes over a connection through the parent proxy, without the TLS between: its PROXY header,
// then heads and bodies of HTTP requests, as the enclave's listener takes them, into the whole application. Whatever
// the bytes are, the connection is closed or has an answer, and none is a 500. It lies apart from the other targets
// because it is a server and no function of bytes.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance } from 'fastify';
import { systemClock } from '../../common/observe/clock.ts';
import { readProxyHeader } from '../../enclave/ratls/listen.ts';
import { encodeProxyHeader } from '../../parent-proxy/forwarding/ingress.ts';
import { SCOPES } from '../../signer/api/operations.ts';
import { createStaticAuthenticator } from '../../signer/auth/static.ts';
import { rememberConnection } from '../../signer/http/context.ts';
import { keylessApp } from '../support/auth-app.ts';
import { recordingLog } from '../support/recording-log.ts';

/** Who sends nothing more gets an answer, or is cut off, long before. */
const MAX_ANSWER_MS = 60_000;
/** Of the event loop. */
const MAX_TURNS = 12;
const TOKEN = 'sr_client_TEST_of_the_fuzzer_0000000000000001';
const HEADER = encodeProxyHeader({
  source: { address: '192.0.2.1', port: 40_000 },
  destination: { address: '192.0.2.2', port: 9_443 },
});

/** One application for all inputs. */
const application: { app?: Promise<FastifyInstance> } = {};

function open(): Promise<FastifyInstance> {
  const policies = [{ name: 'all', rules: [{ effect: 'allow' as const, scopes: SCOPES }] }];
  const tokens = [{ secret: Buffer.from(TOKEN), policies: ['all'], boundCidrs: [] }];
  const authenticator = createStaticAuthenticator({ policies, tokens, anonymousPolicies: [] });
  const clock = systemClock;
  const quiet = { ...recordingLog(), info: nothing, warn: nothing, error: nothing };
  return keylessApp({ authenticator, clock, log: quiet }, { allowedHosts: ['signer'] });
}
const nothing = (): void => undefined;

/** @returns what came back until the connection was closed */
export async function talk(input: Uint8Array): Promise<string> {
  application.app ??= open();
  const { server } = await application.app;
  const [client, stream] = duplexPair();
  const socket = stream as unknown as Socket; // of a socket, the application asks for what a stream has
  const chunks: Buffer[] = [];
  const closed = new Promise<void>((resolve, reject) => {
    const late = setTimeout(
      () => reject(new assert.AssertionError({ message: 'no answer and no end' })),
      MAX_ANSWER_MS,
    );
    for (const event of ['end', 'close', 'error'])
      client.once(event, () => {
        clearTimeout(late);
        resolve();
      });
  });
  client.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined);
  socket.once('close', () => client.destroy());
  client.write(input);
  const handed = readProxyHeader(socket, MAX_ANSWER_MS).then((header) => {
    if (header.kind === 'refused') return void socket.destroy();
    rememberConnection(socket, { peerAddress: header.kind === 'proxied' ? header.source.address : undefined });
    server.emit('connection', socket);
  });
  // Node drops what was asked by a client that has ended: an answer that comes at once comes before.
  for (let turns = 0; turns < MAX_TURNS && chunks.length === 0; turns++) await setImmediate();
  client.end();
  await Promise.all([handed, closed]);
  client.destroy();
  socket.destroy();
  return Buffer.concat(chunks).toString('latin1');
}

export const HTTP_HEADS = {
  name: 'http-heads',
  sources: ['/signer/http/', '/signer/auth/', '/common/formats/'],
  words: [
    ...[
      'GET ',
      'POST ',
      'PATCH ',
      'OPTIONS ',
      ' HTTP/1.1\r\n',
      ' HTTP/1.0\r\n',
      '\r\n',
      '\r\n\r\n',
      '/upcheck',
      '/%00',
    ],
    ...[
      'Host: signer\r\n',
      'Content-Length: 1\r\n',
      'Transfer-Encoding: chunked\r\n',
      '0\r\n\r\n',
      'Expect: 100-continue',
    ],
    ...['Origin: http://a', 'Sec-Fetch-Site: cross-site', 'X-Forwarded-For: ', 'Forwarded: for=', 'traceparent: 00-'],
    ...[
      'Accept: text/plain',
      'Content-Type: application/json\r\n',
      'Connection: upgrade',
      `Authorization: Bearer ${TOKEN}\r\n`,
    ],
  ],
  seeds: () =>
    [
      'GET /upcheck HTTP/1.1\r\nHost: signer\r\n\r\n',
      `GET /api/v1/eth2/publicKeys HTTP/1.1\r\nHost: signer\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
      `POST /api/v1/eth2/sign/0x${'ab'.repeat(48)} HTTP/1.1\r\nHost: signer\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n\r\n`,
      'POST /reload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n',
      'OPTIONS /healthcheck HTTP/1.1\r\nHost: signer\r\nOrigin: https://b\r\nAccess-Control-Request-Method: GET\r\n\r\n',
    ].map((text) => Buffer.concat([HEADER, Buffer.from(text)])),
  async decode(input: Uint8Array): Promise<void> {
    const answer = await talk(input);
    if (answer !== '') assert.match(answer, /^HTTP\/1\.1 [1-5]\d\d /);
    assert.doesNotMatch(answer, /^HTTP\/1\.1 500 /m);
  },
};
