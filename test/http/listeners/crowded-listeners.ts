// The listeners that a crowd comes to, with few places each: the plain one, the TLS one, the attested one, and the gate
// of the parent proxy before the attested one. Whoever imports it has them closed after every test.

import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as tlsConnect } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach } from 'vitest';
import { systemClock } from '../../../common/observe/clock.ts';
import { createPlainLogger } from '../../../common/observe/plain-logger.ts';
import { pausingClock } from '../../../parent-proxy/clock.ts';
import { listenIngress } from '../../../parent-proxy/forwarding/ingress.ts';
import { createProxyMetrics } from '../../../parent-proxy/metrics.ts';
import { createStaticAuthenticator } from '../../../signer/auth/static.ts';
import { listenPlain, listenTls } from '../../../signer/http/listeners/ports.ts';
import type { LostPlace } from '../../../signer/http/places.ts';
import { keylessApp } from '../../support/auth-app.ts';
import { makeCertificate } from '../../support/certificates.ts';
import { LONGEST_WAIT_MS } from '../../support/patience.ts';
import { connectRatls, handshake, RATLS_PORT } from '../../support/ratls-client.ts';
import { FREE_TOKEN, startRatlsSigner } from '../../support/ratls-signer.ts';
import { recordingLog } from '../../support/recording-log.ts';

export const PLACES = 30;
export const ATTACKERS = 45;
export const NEWCOMERS = 12;
export const ATTACKER = '127.0.0.66';
export const HONEST = '127.0.0.9';
export const PATH = '/api/v1/eth2/highWatermark';
/** The application of the test has no keys, and says so to whom it has admitted; others get 401 and 403. */
export const ADMITTED = 200;

/** A stream on which requests are sent, from this address. */
type Open = (from: string) => Promise<Socket>;
/** The same without any handshake. */
type OpenRaw = (from: string) => Promise<Socket>;

/** Where a client of others finds it. */
export interface Outside {
  readonly at: { readonly port: number } | { readonly path: string };
  readonly tls: boolean;
  /** The listener reads who connects from a PROXY header. */
  readonly proxyHeader: boolean;
}

export interface Listening extends Outside {
  readonly open: Open;
  readonly openRaw: OpenRaw;
  readonly lost: readonly LostPlace[];
}

export const LISTENERS = [
  ['the plain listener', plain],
  ['the TLS listener', overTls],
  ['the attested listener', attested],
  ['the gate of the parent proxy', throughParent],
] as const satisfies readonly (readonly [string, () => Promise<Listening>])[];

const ending: (() => unknown)[] = [];
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'crowded-'));
  ending.push(() => rmSync(folder, { recursive: true }));
});
afterEach(async () => {
  for (const end of ending.splice(0).toReversed()) await end();
});

function app(): Promise<FastifyInstance> {
  const authenticator = createStaticAuthenticator({
    policies: [{ name: 'list', rules: [{ effect: 'allow', scopes: ['public_keys'] }] }],
    anonymousPolicies: [],
    tokens: [{ secret: Buffer.from(FREE_TOKEN), policies: ['list'], boundCidrs: [] }],
  });
  return keylessApp({ authenticator, clock: systemClock, log: recordingLog() });
}

function dialFrom(port: number) {
  return async (localAddress: string): Promise<Socket> => {
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    await once(socket, 'connect');
    return socket.on('error', () => undefined);
  };
}

async function plain(): Promise<Listening> {
  const lost: LostPlace[] = [];
  const served = await app();
  ending.push(() => served.close());
  const onLostPlace = (why: LostPlace) => void lost.push(why);
  const { address } = await listenPlain(served, { host: '127.0.0.1', port: 0, maxConnections: PLACES, onLostPlace });
  const [open, at] = [dialFrom(address.port), { port: address.port }];
  return { open, openRaw: open, lost, at, tls: false, proxyHeader: false };
}

async function overTls(): Promise<Listening> {
  const lost: LostPlace[] = [];
  const served = await app();
  ending.push(() => served.close());
  const { cert, key } = makeCertificate(folder, 'tls');
  const { server, address } = await listenTls(served, {
    ...{ host: '127.0.0.1', port: 0, maxConnections: PLACES },
    secureContext: { cert: readFileSync(cert), key: readFileSync(key) },
    onLostPlace: (why) => void lost.push(why),
  });
  ending.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  const openRaw = dialFrom(address.port);
  const open: Open = async (from) => {
    const socket = tlsConnect({ socket: await openRaw(from), rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    return socket.on('error', () => undefined);
  };
  return { open, openRaw, lost, at: { port: address.port }, tls: true, proxyHeader: false };
}

async function attested(): Promise<Listening> {
  const signer = await startRatlsSigner({ maxConnections: PLACES });
  ending.push(() => signer.close());
  return {
    at: { path: signer.socketPath },
    tls: true,
    proxyHeader: true,
    open: async (from) => (await connectRatls(signer.parent, { from })).socket,
    openRaw: async () => (await signer.parent.connect(RATLS_PORT)).on('error', () => undefined),
    get lost() {
      return signer.refused.filter((why) => why === 'displaced' || why === 'limit');
    },
  };
}

/** The signer itself has places enough here. */
async function throughParent(): Promise<Listening> {
  const signer = await startRatlsSigner({ maxConnections: 10 * PLACES });
  ending.push(() => signer.close());
  const metrics = createProxyMetrics();
  const output = {
    write: () => true,
    drained: async () => undefined,
  };
  const world = {
    transport: signer.parent,
    clock: pausingClock,
    logger: createPlainLogger(output, systemClock),
    metrics,
    output,
  };
  const limits = {
    maxConnections: PLACES,
    idleTimeoutMs: LONGEST_WAIT_MS,
    connectTimeoutMs: LONGEST_WAIT_MS,
    connectRetryMs: 0,
  };
  const listen = { host: '127.0.0.1', port: 0 };
  const ingress = await listenIngress(
    { name: 'tls', listen, enclavePort: RATLS_PORT, proxyHeader: true, limits },
    world,
  );
  ending.push(async () => {
    await ingress.close();
    ingress.cutAll();
    await ingress.empty();
  });
  const openRaw = dialFrom(ingress.port);
  const counted = (name: 'displaced' | 'limit'): LostPlace[] => {
    const pattern = name === 'displaced' ? /displaced_connections_total\{.*\} (\d+)/ : /outcome="limit"\} (\d+)/;
    return Array.from({ length: Number(pattern.exec(metrics.render())?.[1] ?? 0) }, () => name);
  };
  return {
    at: { port: ingress.port },
    tls: true,
    proxyHeader: false,
    open: async (from) => handshake(await openRaw(from)),
    openRaw,
    get lost() {
      return [...counted('displaced'), ...counted('limit')];
    },
  };
}
