// What every listener of the application has, on ports or on a transport.

import type http from 'node:http';
import https from 'node:https';
import type { TLSSocket } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { hasOpenRequests } from '../open-requests.ts';
import { headerTimes } from '../places.ts';
import { answerClientError } from '../refusals.ts';

export interface ClosableServer {
  close(onClosed: () => void): unknown;
  closeIdleConnections(): void;
  closeAllConnections(): void;
}

const IDLE_SWEEP_MS = 50;
/** Longer than the keep-alive time, which ends idle connections first. */
const STALLED_AFTER_MS = 120_000;

/** With the times of the plain listener unless others are given; it does not listen yet. */
export function createTlsServer(app: FastifyInstance, options: https.ServerOptions): https.Server {
  const { keepAliveTimeout, requestTimeout, headersTimeout } = app.server;
  const times = { keepAliveTimeout, requestTimeout, ...headerTimes(headersTimeout) };
  const server = https.createServer({ ...times, ...options }, app.routing);
  server.on('secureConnection', readThroughStream);
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.on('clientError', answerClientError);
  cutStalledConnections(server);
  return server;
}

/** By the handle of TLS a paused stream would lose requests (docs/decisions/0010). The parser copies what it takes. */
function readThroughStream(socket: TLSSocket): void {
  if (!socket.destroyed) socket.on('data', (bytes: Buffer) => void bytes.fill(0));
}

/** Lets requests in flight finish. @returns whether everything ended within the time */
export async function closeGracefully(servers: readonly ClosableServer[], timeoutSeconds: number): Promise<boolean> {
  const closed = Promise.all(servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve()))));
  // A kept-alive connection that was busy just now would stay open for its whole idle time.
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

/** One that waits for us is left alone (specification/signing.md#permits). */
export function cutStalledConnections(server: http.Server | https.Server): void {
  server.setTimeout(STALLED_AFTER_MS, (socket) => {
    if (socket.writableLength > 0 || !hasOpenRequests(socket)) socket.destroy();
  });
}
