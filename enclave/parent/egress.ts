// The only ways out of an enclave (specification/enclave.md#egress). TLS goes from the client here to the endpoint; the
// parent carries bytes.

import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import type { Log } from '../../common/observe/log.ts';
import type { EgressEndpoint } from '../../signer/api/egress.ts';
import type { Transport } from '../../signer/native/transport.ts';
import { keepTrying } from '../platform.ts';

/** More than the sockets of all clients of an endpoint (MAX_SOCKETS of signer/aws/client.ts; a pool of 1,024). */
const MAX_EGRESS_CONNECTIONS = 2048;
/** A parent proxy that restarts is back within it. */
const CONNECT_PATIENCE = { patienceMs: 1_500, firstPauseMs: 25, maxPauseMs: 400 };
const CONNECT_ATTEMPT_MS = 1_000;
const IDLE_MS = 15 * 60_000;
const BACKLOG = 1024;

export type EgressOutcome = 'connected' | 'unreachable' | 'over_limit';

interface EgressParts {
  readonly parent: Transport;
  readonly hostsPath: string;
  /** Where an alias listens for its declared port, where ports below 1024 are not to be had. */
  readonly aliasPort?: ((port: number) => number) | undefined;
  readonly onConnection: (endpoint: number, outcome: EgressOutcome) => void;
  readonly log: Log;
}

export interface Egress {
  close(): Promise<void>;
}

export async function openEgress(endpoints: readonly EgressEndpoint[], parts: EgressParts): Promise<Egress> {
  await writeFile(parts.hostsPath, hostsFile(endpoints), { mode: 0o644 });
  const opened = new AsyncDisposableStack();
  try {
    for (const [index, endpoint] of endpoints.entries()) {
      const alias = await openAlias(endpoint, index, parts);
      opened.defer(() => alias.close());
      const { hostname, loopback, port, vsock_port } = endpoint;
      parts.log.info({ hostname, port, loopback, vsock_port }, 'egress is open');
    }
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
  return { close: () => opened.disposeAsync() };
}

function hostsFile(endpoints: readonly EgressEndpoint[]): string {
  return ['127.0.0.1 localhost', ...endpoints.map(({ loopback, hostname }) => `${loopback} ${hostname}`), ''].join(
    '\n',
  );
}

async function openAlias(endpoint: EgressEndpoint, index: number, parts: EgressParts): Promise<Egress> {
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
    open.add(client);
    client.once('close', () => open.delete(client));
    client.on('error', () => undefined); // 'close' follows
    void forward(client, endpoint, index, parts);
  });
  server.maxConnections = MAX_EGRESS_CONNECTIONS;
  server.on('drop', () => parts.onConnection(index, 'over_limit'));
  const { hostname, loopback, port } = endpoint;
  await listen(server, loopback, parts.aliasPort?.(port) ?? port).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the alias ${loopback}:${port} of ${hostname} cannot be had (${error.code})`, { cause: error });
  });
  return {
    close: () => {
      for (const client of open) client.resetAndDestroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

async function forward(client: Socket, endpoint: EgressEndpoint, index: number, parts: EgressParts): Promise<void> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  client.once('close', leave);
  try {
    const { signal } = gone;
    const connect = () => parts.parent.connect(endpoint.vsock_port, { timeoutMs: CONNECT_ATTEMPT_MS, signal });
    const outside = await keepTrying(connect, CONNECT_PATIENCE, { signal });
    client.off('close', leave);
    if (client.destroyed) {
      outside.destroy();
      return;
    }
    parts.onConnection(index, 'connected');
    splice(client, outside, { idleMs: IDLE_MS });
    client.resume();
  } catch (error) {
    client.resetAndDestroy(); // an end would pass for an empty answer
    if (gone.signal.aborted) return;
    parts.onConnection(index, 'unreachable');
    const problem = error instanceof Error && 'code' in error ? error.code : String(error);
    parts.log.warn(
      { hostname: endpoint.hostname, vsock_port: endpoint.vsock_port, problem },
      'the parent does not connect',
    );
  }
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port, backlog: BACKLOG });
  await once(server, 'listening');
}

// What breaks one of the two streams breaks the other: an end would pass for a complete answer.

export function splice(client: Socket, outside: Socket, { idleMs }: { readonly idleMs: number }): void {
  const cut = (): void => {
    client.resetAndDestroy();
    outside.destroy();
  };
  for (const [from, to] of [
    [client, outside],
    [outside, client],
  ] as const) {
    from.on('error', () => undefined); // 'close' follows
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) cut();
    });
    from.setTimeout(idleMs, cut);
    from.pipe(to);
  }
}
