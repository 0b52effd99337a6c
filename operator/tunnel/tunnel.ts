// The tunnel: a listener on this machine for programs that speak plain HTTP, and verified connections to one enclave
// behind it. It listens only when the enclave was verified or is merely not there; a connection whose evidence does not
// verify carries nothing, and several in a row close everything.

import type { Server } from 'node:http';
import type { AttestationFailure } from '../attestation/attestation-failure.ts';
import { type AttestedPeer, connectAttested } from '../connect.ts';
import { authorizationHeader } from '../token.ts';
import { type AttemptsOptions, MAX_REFUSED_IN_A_ROW } from './attempts.ts';
import { type ForwardOptions, forward } from './forward.ts';
import { keepWarm } from './keep-warm.ts';
import { createListener, hostNamesOf, type ListenerOptions, reasonOf, serveUntil } from './listener.ts';
import { ConnectionPool } from './pool.ts';

export interface TunnelOptions extends ListenerOptions {
  readonly peer: AttestedPeer;
  readonly token: string;
  readonly idleMs?: number;
  readonly pauses?: Pick<AttemptsOptions, 'unreachable' | 'unverified'>;
}

/** Below the 72 s after which the signer's listener closes an idle connection. */
const IDLE_MS = 30_000;
const CONNECT_TIMEOUT_MS = 15_000;

/**
 * Serve until the signal.
 * @throws AttestationFailure when the enclave is not, or no longer, who it should be; CommandFailure when the address
 * is taken
 */
export async function runTunnel(options: TunnelOptions, signal: AbortSignal): Promise<void> {
  const { peer, log } = options;
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  failed.catch(() => undefined); // it is awaited below, perhaps later than it fails
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
  const server = createForwarder(options, pool);
  try {
    await pool.start();
    await serveUntil(server, { options, about: `verified connections to ${peer.url.origin}`, signal, failed });
  } finally {
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

function createForwarder(options: TunnelOptions, pool: ConnectionPool): Server {
  const forwarding: ForwardOptions = {
    pool,
    host: options.peer.url.host,
    authorization: authorizationHeader(options.token),
    maxBodyBytes: options.maxBodyBytes,
    timeoutSeconds: options.timeoutSeconds,
    hostNames: hostNamesOf(options),
    log: options.log,
  };
  return createListener(options, (request, response) => forward(request, response, forwarding));
}
