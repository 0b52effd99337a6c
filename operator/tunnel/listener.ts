// Where validator clients are listened for, by the tunnel to one enclave and by the combiner of distributed keys: the
// limits of a listener, its address, and its end, which lets what is under way finish.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { shownErrorCode } from '../../common/command-line/file-faults.ts';
import { bounded } from '../../common/command-line/text.ts';
import { localFailure } from '../exit.ts';

export interface ListenerOptions {
  readonly host: string;
  readonly port: number;
  readonly loopback: boolean;
  readonly maxConnections: number;
  readonly maxWaiting: number;
  readonly maxBodyBytes: number;
  readonly timeoutSeconds: number;
  readonly log: (line: string) => void;
  readonly onListening?: (url: string) => void;
}

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

export function createListener(
  { maxConnections, maxWaiting, log }: ListenerOptions,
  serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Server {
  const server = createServer(LISTENER, (request, response) => {
    serve(request, response).catch((error: unknown) => {
      // A bug: it ends one request, and not every validator's signer.
      log(`a request ended by a fault of this program: ${bounded(String(error), 200)}`);
      response.destroy();
    });
  });
  server.maxConnections = maxConnections + maxWaiting + SPARE_CLIENTS;
  return server;
}

/** By which clients on this machine may call the listener; undefined where others may, by names of their own. */
export function hostNamesOf({ loopback, host }: ListenerOptions): ReadonlySet<string> | undefined {
  return loopback ? new Set(['localhost', '127.0.0.1', '[::1]', bracketed(host)]) : undefined;
}

interface Serving {
  readonly options: ListenerOptions;
  /** What is behind it. */
  readonly about: string;
  readonly signal: AbortSignal;
  /** Rejected when nothing may be served any more. */
  readonly failed?: Promise<never>;
}

/** Until the signal; then what is under way is finished. @throws CommandFailure when the address is taken */
export async function serveUntil(server: Server, { options, about, signal, failed }: Serving): Promise<void> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  try {
    const url = await listen(server, options);
    options.log(`listening on ${url}; ${about}`);
    options.onListening?.(url);
    signal.addEventListener('abort', () => stop(), { once: true });
    if (signal.aborted) stop();
    await Promise.race(failed === undefined ? [stopped] : [stopped, failed]);
    options.log('stopping: requests under way are finished');
    await drain(server);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function listen(server: Server, { host, port }: ListenerOptions): Promise<string> {
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

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error ? String(error.code) : error.message;
}
