// The tunnel: a listener on this machine for programs that speak plain HTTP, and verified connections to one enclave
// behind it. It listens only when the enclave was verified or is merely not there; a connection whose evidence does not
// verify carries nothing, and several in a row close everything.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import type { AttestationFailure } from '../attestation/attestation-failure.ts';
import { type AttestedPeer, connectAttested } from '../connect.ts';
import { localFailure } from '../exit.ts';
import { authorizationHeader } from '../token.ts';
import { type AttemptsOptions, MAX_REFUSED_IN_A_ROW } from './attempts.ts';
import { type ForwardOptions, forward } from './forward.ts';
import { keepWarm } from './keep-warm.ts';
import { ConnectionPool } from './pool.ts';

export interface TunnelOptions {
  readonly peer: AttestedPeer;
  readonly token: string;
  readonly host: string;
  readonly port: number;
  readonly loopback: boolean;
  readonly maxConnections: number;
  readonly maxWaiting: number;
  readonly maxBodyBytes: number;
  readonly timeoutSeconds: number;
  readonly idleMs?: number;
  readonly pauses?: Pick<AttemptsOptions, 'unreachable' | 'unverified'>;
  readonly log: (line: string) => void;
  readonly onListening?: (url: string) => void;
}

/** Below the 72 s after which the signer's listener closes an idle connection. */
const IDLE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 15_000;
const DRAIN_MS = 10_000;
const LISTENER = {
  maxHeaderSize: 16 * 1024,
  headersTimeout: 10_000,
  requestTimeout: 300_000,
  keepAliveTimeout: 60_000,
  // said here, so that NODE_OPTIONS cannot say otherwise: two framings of one body would pass
  insecureHTTPParser: false,
} as const;
/** Local connections beyond those that can be served or wait. */
const SPARE_CLIENTS = 64;

/**
 * Serve until the signal.
 * @throws AttestationFailure when the enclave is not, or no longer, who it should be; CommandFailure when the address
 * is taken
 */
export async function runTunnel(options: TunnelOptions, signal: AbortSignal): Promise<void> {
  const { peer, log } = options;
  const { promise: stopped, resolve: stop, reject: fail } = Promise.withResolvers<void>();
  stopped.catch(() => undefined); // it is awaited below, perhaps later than it fails
  const pool = new ConnectionPool({
    open: (ending) => connectAttested(peer, ending),
    maxConnections: options.maxConnections,
    maxWaiting: options.maxWaiting,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    idleMs: options.idleMs ?? IDLE_MS,
    keepWarm: (socket) => keepWarm(socket, peer.url.host),
    ...options.pauses,
    now: peer.attestation.now,
    onUnreachable: (error) =>
      log(`the enclave at ${peer.url.origin} cannot be reached (${reasonOf(error)}): trying on`),
    onUnverified: (failure, inARow) =>
      log(`the enclave at ${peer.url.origin} is not verified ${whatNext(failure, inARow)}`),
    onReachable: () => log(`the enclave at ${peer.url.origin} is verified again`),
    onRefused: (failure: AttestationFailure) => fail(failure),
  });
  const server = createListener(options, pool);
  try {
    await pool.start();
    const url = await listen(server, options);
    log(`listening on ${url}; verified connections to ${peer.url.origin}`);
    options.onListening?.(url);
    signal.addEventListener('abort', () => stop(), { once: true });
    if (signal.aborted) stop();
    await stopped;
    log('stopping: requests under way are finished');
    await drain(server);
  } finally {
    server.closeAllConnections();
    server.close();
    pool.close();
  }
}

/** In one line: the codes, which docs/guides/attestation.md explains. */
function whatNext({ failures }: AttestationFailure, inARow: number): string {
  const codes = failures.map(({ code, detail }) => `${code}: ${detail}`).join('; ');
  const then =
    inARow === 0 ? 'look at the clocks' : `${inARow} of ${MAX_REFUSED_IN_A_ROW} in a row, then the tunnel ends`;
  return `(${codes}): nothing is sent, trying on; ${then}`;
}

function createListener(options: TunnelOptions, pool: ConnectionPool): Server {
  const forwarding: ForwardOptions = {
    pool,
    host: options.peer.url.host,
    authorization: authorizationHeader(options.token),
    maxBodyBytes: options.maxBodyBytes,
    timeoutSeconds: options.timeoutSeconds,
    hostNames: options.loopback ? new Set(['localhost', '127.0.0.1', '[::1]', bracketed(options.host)]) : undefined,
    log: options.log,
  };
  const server = createServer(LISTENER, (request, response) => void forward(request, response, forwarding));
  server.maxConnections = options.maxConnections + options.maxWaiting + SPARE_CLIENTS;
  return server;
}

async function listen(server: Server, { host, port }: TunnelOptions): Promise<string> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    const code = shownErrorCode(error);
    throw localFailure(`cannot listen on ${bracketed(host)}:${port} (${code})`, 'another address: --listen HOST:PORT');
  }
  return `http://${bracketed(host)}:${(server.address() as AddressInfo).port}`;
}

async function drain(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
  await closed;
  clearTimeout(timer);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error ? String(error.code) : error.message;
}
