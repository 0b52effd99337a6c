// The listeners of an ordinary host, on ports: plain HTTP, the optional TLS, and metrics. Each has limits: connections,
// header time, idle time. An image has none of them.

import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import type http from 'node:http';
import type https from 'node:https';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { Places } from '../../../common/formats/places.ts';
import { streamOf } from '../context.ts';
import { CONNECTION_LIMITS, type LostPlace, takePlace } from '../places.ts';
import { type AskForClients, rememberClients } from './client-certificates.ts';
import { handshakeTurns } from './handshakes.ts';
import { createTlsServer, cutStalledConnections } from './listen.ts';
import { createMetricsServer, MAX_SCRAPERS, type MetricsSource, SCRAPE_TIMEOUT_MS } from './metrics.ts';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

interface TlsListenOptions extends ListenAddress {
  readonly maxConnections: number;
  readonly secureContext: SecureContextOptions;
  /** Undefined: no client is asked for a certificate. */
  readonly clients?: AskForClients | undefined;
  /** CONNECTION_LIMITS unless given. */
  readonly handshakeTimeoutMs?: number;
  readonly onLostPlace?: (why: LostPlace) => void;
}

export interface Listener {
  readonly address: AddressInfo;
  readonly server: Server;
}

/** Connections of the plain listener at most: more than any fleet of clients opens, few enough for memory. */
export const MAX_PLAIN_CONNECTIONS = 16_384;
/** Connections that wait to be accepted; the kernel may allow fewer. */
const BACKLOG = 4096;
const SPARE_WHILE_CLOSING = 256;

interface PlainListenOptions extends ListenAddress {
  /** MAX_PLAIN_CONNECTIONS unless given. */
  readonly maxConnections?: number;
  readonly onLostPlace?: (why: LostPlace) => void;
}

export async function listenPlain(app: FastifyInstance, address: PlainListenOptions): Promise<Listener> {
  const { server } = app;
  const { maxConnections = MAX_PLAIN_CONNECTIONS, onLostPlace = () => undefined } = address;
  limitConnections(server, maxConnections, onLostPlace);
  cutStalledConnections(server);
  // A name gives one address, as for every other listener: Fastify would open more, without any of these limits, for
  // localhost.
  const { address: host } = await lookup(address.host);
  await app.listen({ host, port: address.port, backlog: BACKLOG });
  return listener(server);
}

/** A second listener on the same routes. */
export async function listenTls(
  app: FastifyInstance,
  options: TlsListenOptions,
): Promise<Listener & { server: https.Server }> {
  const handshakeTimeout = options.handshakeTimeoutMs ?? CONNECTION_LIMITS.handshakeTimeoutMs;
  const { clients } = options;
  // A bad certificate is answered, with the reason: to refuse the handshake would leave its owner to guess.
  const asking = clients === undefined ? {} : { requestCert: true, rejectUnauthorized: false };
  const server = createTlsServer(app, { ...options.secureContext, ...asking, handshakeTimeout });
  paceHandshakes(server, handshakeTimeout);
  if (clients !== undefined) rememberClients(server, clients);
  limitConnections(server, options.maxConnections, options.onLostPlace ?? (() => undefined));
  server.listen({ host: options.host, port: options.port, backlog: BACKLOG });
  await once(server, 'listening');
  return { ...listener(server), server };
}

/** @param scrapeTimeoutMs as of metrics on a transport */
export async function listenMetrics(
  source: MetricsSource,
  address: ListenAddress,
  scrapeTimeoutMs = SCRAPE_TIMEOUT_MS,
): Promise<http.Server> {
  const server = createMetricsServer(source, scrapeTimeoutMs);
  limitConnections(server, MAX_SCRAPERS, () => undefined);
  server.listen({ host: address.host, port: address.port });
  await once(server, 'listening');
  return server;
}

function listener<S extends Server>(server: S): Listener & { server: S } {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the listener has no network address');
  return { server, address };
}

function limitConnections(server: Server, maxConnections: number, onLost: (why: LostPlace) => void): void {
  const places = new Places<Socket>(maxConnections);
  server.maxConnections = maxConnections + SPARE_WHILE_CLOSING;
  server.on('drop', () => onLost('limit'));
  // After the server's own listener: TLS does not take a stream that is gone.
  server.on('connection', (socket: Socket) => {
    takePlace(places, socket, socket.remoteAddress, onLost);
  });
}

/** The connections of a TLS listener on a port. @param timeoutMs from the connection to the end of the handshake */
function paceHandshakes(server: Server, timeoutMs: number): void {
  const [accept, ...others] = server.listeners('connection');
  if (accept === undefined || others.length > 0) throw new Error('the listener is not as Node makes it');
  const turns = handshakeTurns();
  const deadlines = new WeakMap<Socket, NodeJS.Timeout>();
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const deadline = setTimeout(() => socket.destroy(), timeoutMs);
    deadlines.set(socket, deadline);
    socket.once('close', () => clearTimeout(deadline));
    turns.await(socket, socket.remoteAddress, () => accept.call(server, socket));
  });
  server.prependListener('secureConnection', (secure: TLSSocket) => {
    const raw = streamOf(secure);
    if (raw !== undefined) clearTimeout(deadlines.get(raw));
  });
}

// The first message of a client, a ClientHello in one or more records (RFC 8446 §4, §5.1). It is only measured, and all
// its bytes stay in the socket.
