// The sockets around the application: the plain HTTP listener, the optional TLS listener, and a shutdown that finishes
// the requests under way. Every listener has limits: connections, header time, idle time.

import { lookup } from 'node:dns/promises';
import type http from 'node:http';
import https from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import type { SecureContextOptions } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { answerClientError } from '../client-errors.ts';
import { hasOpenRequests } from '../open-requests.ts';
import { type AskForClients, rememberClients } from './client-certificates.ts';
import { CONNECTION_LIMITS, headerTimes } from './connection-limits.ts';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export interface TlsListenOptions extends ListenAddress {
  readonly maxConnections: number;
  readonly secureContext: SecureContextOptions;
  /** Undefined: no client is asked for a certificate. */
  readonly clients?: AskForClients | undefined;
  /** CONNECTION_LIMITS unless given. */
  readonly handshakeTimeoutMs?: number;
}

export interface Listener {
  readonly address: AddressInfo;
  readonly server: Server;
}

/** What shutting down needs of a server, whether its connections come from a port or from a transport. */
export interface ClosableServer {
  /** Stop accepting. @param onClosed called when the last connection is gone */
  close(onClosed: () => void): unknown;
  closeIdleConnections(): void;
  closeAllConnections(): void;
}

/** Connections of the plain listener at most: more than any fleet of clients opens, few enough for memory. */
const MAX_PLAIN_CONNECTIONS = 16_384;
/** Connections that wait to be accepted; the kernel may allow fewer. */
const BACKLOG = 4096;
const IDLE_SWEEP_MS = 50;
/** Longer than the keep-alive time, which ends idle connections first. */
const STALLED_AFTER_MS = 120_000;

export async function listenPlain(app: FastifyInstance, address: ListenAddress): Promise<Listener> {
  const { server } = app;
  server.maxConnections = MAX_PLAIN_CONNECTIONS;
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
  if (clients !== undefined) rememberClients(server, clients);
  server.maxConnections = options.maxConnections;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ host: options.host, port: options.port, backlog: BACKLOG }, resolve);
  await promise;
  server.off('error', reject);
  return { ...listener(server), server };
}

/**
 * The application's routes over TLS, with the times of the plain listener unless others are given; it does not listen
 * yet.
 */
export function createTlsServer(app: FastifyInstance, options: https.ServerOptions): https.Server {
  const { keepAliveTimeout, requestTimeout, headersTimeout } = app.server;
  const times = { keepAliveTimeout, requestTimeout, ...headerTimes(headersTimeout) };
  const server = https.createServer({ ...times, ...options }, app.routing);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.on('clientError', answerClientError);
  cutStalledConnections(server);
  return server;
}

/**
 * Stop accepting, let requests in flight finish, then close. Idle connections are closed at once; what is still open
 * when the time is over is cut.
 * @returns whether everything ended within the time
 */
export async function closeGracefully(servers: readonly ClosableServer[], timeoutSeconds: number): Promise<boolean> {
  const closed = Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  // A kept-alive connection that was busy just now would stay open for its whole idle time: it is closed when it falls
  // idle.
  const sweep = setInterval(() => {
    for (const server of servers) server.closeIdleConnections();
  }, IDLE_SWEEP_MS);
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(resolve, timeoutSeconds * 1000, 'late');
  const first = await Promise.race([closed, late]);
  clearTimeout(timer);
  clearInterval(sweep);
  if (first !== 'late') return true;
  for (const server of servers) server.closeAllConnections();
  await closed;
  return false;
}

/**
 * A connection on which nothing moves is cut when it holds an answer that its client does not read, or no request at
 * all. One that waits for us is left alone: some requests take long (specification/signing.md#permits).
 */
function cutStalledConnections(server: http.Server | https.Server): void {
  server.setTimeout(STALLED_AFTER_MS, (socket) => {
    if (socket.writableLength > 0 || !hasOpenRequests(socket)) socket.destroy();
  });
}

function listener<S extends Server>(server: S): Listener & { server: S } {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the listener has no network address');
  return { server, address };
}
