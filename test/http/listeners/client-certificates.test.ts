// Client certificates on a real TLS listener whose clock and authority a test moves: what a connection was trusted for
// ends with either, also in the middle of a handshake (specification/authorization.md#client-certificates).

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { declareClients } from '../../../signer/auth/known-clients.ts';
import { createStaticAuthenticator, type StaticAuthenticator } from '../../../signer/auth/static.ts';
import { listenTls } from '../../../signer/http/listeners/ports.ts';
import { mountReload } from '../../../signer/http/routes/reload.ts';
import { parseClientCa } from '../../../signer/tls/client-ca.ts';
import { secureContextOf } from '../../../signer/tls/file.ts';
import { keylessApp } from '../../support/auth-app.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { Authority, type Issued, issueSelfSigned } from '../../support/client-certificates.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { keptConnection, tlsCall } from '../../support/tls-call.ts';

const HOST = '127.0.0.1';
const POLICIES = [{ name: 'list', rules: [{ effect: 'allow' as const, scopes: ['reload' as const] }] }];

let folder: string;
let root: Authority;
let teku: Issued;
let pinned: Issued;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'client-certificates-'));
  root = await Authority.root('clients');
  teku = await root.issue('O=Example, CN=teku');
  pinned = await issueSelfSigned('CN=pinned');
});
afterAll(() => rmSync(folder, { recursive: true }));

let app: FastifyInstance;
let authenticator: StaticAuthenticator;
let close: () => void;
let port: number;
let nowMs: number;
let ca: string;
beforeEach(async () => {
  nowMs = Date.now();
  ca = 'first';
  authenticator = createStaticAuthenticator({
    policies: POLICIES,
    anonymousPolicies: [],
    tokens: [],
    clients: declareClients([
      { name: 'teku', match: { kind: 'subject', subject: 'CN=teku,O=Example' }, policies: ['list'], boundCidrs: [] },
      { name: 'pinned', match: { kind: 'spki', sha256: pinned.spkiSha256 }, policies: ['list'], boundCidrs: [] },
    ]),
  });
  const log = recordingLog();
  app = await keylessApp({
    authenticator,
    clock: systemClock,
    log,
    mountOwn: (mounted) => mountReload(mounted, { status: { status: 'idle' }, begin: () => true }),
  });
  const own = makeCertificate(folder, 'signer');
  const pair = {
    cert: readFileSync(own.cert),
    key: readFileSync(own.key),
    fingerprint: '',
    notBefore: '',
    notAfter: '',
    clientCa: parseClientCa(Buffer.from(root.pem)),
  };
  const { server, address } = await listenTls(app, {
    host: HOST,
    port: 0,
    maxConnections: 16,
    secureContext: secureContextOf(pair, true),
    clients: { caInForce: () => ca, now: () => nowMs, refusal: undefined, log },
  });
  port = address.port;
  close = () => server.close();
});
afterEach(async () => {
  close();
  await app.close();
});

const url = () => `https://${HOST}:${port}/reload`;

it('a connection is trusted no longer than the authority that it was trusted under', async () => {
  const agent = keptConnection(teku);
  expect(await tlsCall(url(), agent)).toMatchObject({ status: 200 });
  expect(await tlsCall(url(), agent)).toMatchObject({ status: 200, reused: true });
  ca = 'second';
  expect(await tlsCall(url(), agent)).toMatchObject({
    status: 401,
    reason: 'client_certificate_untrusted',
    reused: true,
    headers: { connection: 'close' },
  });
  expect(await tlsCall(url(), agent)).toMatchObject({ status: 200, reused: false });
  agent.destroy();
});

it('a handshake that began under the authority before is not trusted under the one after', async () => {
  const raw = connect(port, HOST);
  await once(raw, 'connect');
  const agent = keptConnection(teku);
  await tlsCall(url(), agent); // a later connection was served, so the earlier one was accepted
  ca = 'second';
  const secure = tlsConnect({ socket: raw, cert: teku.cert, key: teku.key, rejectUnauthorized: false });
  secure.write('GET /reload HTTP/1.1\r\nHost: signer\r\nConnection: close\r\n\r\n');
  const answer = await secure.setEncoding('utf8').toArray();
  expect(answer.join('')).toContain('client_certificate_untrusted');
  agent.destroy();
});

it('a pin needs no authority', async () => {
  const agent = keptConnection(pinned);
  ca = 'second';
  expect(await tlsCall(url(), agent)).toMatchObject({ status: 200 });
  agent.destroy();
});

it.each([
  ['of an authority', () => teku],
  ['that is pinned', () => pinned],
])('a certificate %s ends in the middle of a connection', async (_what, identity) => {
  const agent = keptConnection(identity());
  expect(await tlsCall(url(), agent)).toMatchObject({ status: 200 });
  nowMs += 2 * 86_400_000;
  expect(await tlsCall(url(), agent)).toMatchObject({
    status: 401,
    reason: 'client_certificate_expired',
    reused: true,
  });
  nowMs -= 4 * 86_400_000;
  expect(await tlsCall(url(), agent)).toMatchObject({ status: 401, reason: 'client_certificate_expired' });
  agent.destroy();
});

it('an authority of the chain ends in the middle of a connection, before the certificate and the root do', async () => {
  const hours = (count: number) => ({ notAfter: new Date(Date.now() + count * 3_600_000) });
  const between = await root.intermediate('between', hours(12));
  const agent = keptConnection(await between.issue('O=Example, CN=teku', hours(240)));
  const direct = keptConnection(await root.issue('O=Example, CN=teku', hours(240)));
  nowMs += 11 * 3_600_000;
  for (const one of [agent, direct]) expect(await tlsCall(url(), one)).toMatchObject({ status: 200 });
  nowMs += 2 * 3_600_000;
  expect(await tlsCall(url(), agent)).toMatchObject({
    status: 401,
    reason: 'client_certificate_untrusted',
    reused: true,
    headers: { connection: 'close' },
  });
  expect(await tlsCall(url(), direct)).toMatchObject({ status: 200, reused: true });
  nowMs += 12 * 3_600_000; // the root is over
  expect(await tlsCall(url(), direct)).toMatchObject({ status: 401, reason: 'client_certificate_untrusted' });
  for (const one of [agent, direct]) one.destroy();
});
