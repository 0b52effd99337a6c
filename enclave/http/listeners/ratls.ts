// The RA-TLS listener: PROXY header, TLS 1.3 with an attested certificate, then the application's routes. It never
// resumes a session, because a resumed session skips the evidence. Without valid evidence it serves no new connection
// (specification/evidence.md#tls). It cuts off and counts every connection that does not become a request in time.

import { constants } from 'node:crypto';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import type { Log } from '../../../observe/log.ts';
import type { Transport } from '../../native/transport.ts';
import type { RatlsIdentity } from '../../tee/ratls/identity.ts';
import type { IdentitySource } from '../../tee/ratls/rotation.ts';
import { CONNECTION_LIMITS, type ConnectionLimits, headerTimes } from './connection-limits.ts';
import { type ConnectionFacts, rememberConnection, streamOf } from './connections.ts';
import { createTlsServer } from './listen.ts';
import { readProxyHeader } from './proxy-preamble.ts';
import { serveTransport, type TransportServer } from './transport-server.ts';

const REFUSED_CONNECTIONS = ['limit', 'proxy_header', 'no_evidence', 'handshake'] as const;
/** Why a connection never got as far as a request. */
export type RefusedConnection = (typeof REFUSED_CONNECTIONS)[number];

export interface RatlsListenOptions {
  readonly transport: Transport;
  readonly port: number;
  readonly maxConnections: number;
  readonly identities: IdentitySource;
  readonly log: Log;
  readonly onRefused?: (reason: RefusedConnection) => void;
  readonly limits?: Partial<RatlsLimits>;
}

/** The handshake is timed from the end of the header. */
export interface RatlsLimits extends ConnectionLimits {
  /** The parent sends the header with the connection. */
  readonly proxyHeaderTimeoutMs: number;
}

const LIMITS: RatlsLimits = { ...CONNECTION_LIMITS, proxyHeaderTimeoutMs: 5000 };

/** In TLS 1.3 a ticket then names a session that is kept nowhere: nothing is ever resumed. */
const TLS = { minVersion: 'TLSv1.3', secureOptions: constants.SSL_OP_NO_TICKET, ALPNProtocols: ['http/1.1'] } as const;

export function listenRatls(app: FastifyInstance, options: RatlsListenOptions): Promise<TransportServer> {
  const { transport, port, maxConnections, log } = options;
  const refuse = (socket: Socket, reason: RefusedConnection, problem?: string): void => {
    if (problem !== undefined) log.debug({ reason, problem }, 'connection refused');
    options.onRefused?.(reason);
    socket.destroy();
  };
  const limits = { ...LIMITS, ...options.limits };
  const server = createTlsServer(app, { ...TLS, ...headerTimes(limits.headersTimeoutMs) });
  const parts: AcceptParts = { server, identities: options.identities, limits, refuse };
  const accept = acceptor(parts);
  return serveTransport(server, {
    transport,
    port,
    maxConnections,
    prepare(socket, hand) {
      accept(socket, hand).catch((error: unknown) => {
        log.error({ err: error }, 'a connection could not be accepted');
        socket.destroy();
      });
    },
    onOverLimit: () => options.onRefused?.('limit'),
  });
}

interface AcceptParts {
  readonly server: TlsServer;
  readonly identities: IdentitySource;
  readonly limits: RatlsLimits;
  readonly refuse: (socket: Socket, reason: RefusedConnection, problem?: string) => void;
}

interface Handshake {
  readonly facts: ConnectionFacts;
  readonly deadline: NodeJS.Timeout;
}

function acceptor({ server, identities, limits, refuse }: AcceptParts) {
  const handshakes = new WeakMap<Socket, Handshake>();
  const useIdentity = identityInForce(server);
  const end = (raw: Socket): Handshake | undefined => {
    const handshake = handshakes.get(raw);
    clearTimeout(handshake?.deadline);
    handshakes.delete(raw);
    return handshake;
  };

  server.prependListener('secureConnection', (secure: TLSSocket) => {
    const raw = streamOf(secure);
    const handshake = raw && end(raw);
    if (handshake === undefined) secure.destroy();
    else rememberConnection(secure, handshake.facts);
  });

  return async (raw: Socket, hand: (socket: Socket) => void): Promise<void> => {
    const header = await readProxyHeader(raw, limits.proxyHeaderTimeoutMs);
    if (header.kind === 'refused') return refuse(raw, 'proxy_header', header.problem);
    const identity = identities.current();
    if (identity === undefined) return refuse(raw, 'no_evidence');
    const peerAddress = header.kind === 'proxied' ? header.source.address : undefined;
    const deadline = setTimeout(() => raw.destroy(), limits.handshakeTimeoutMs);
    handshakes.set(raw, { facts: { peerAddress, identity }, deadline });
    raw.once('close', () => {
      if (end(raw) !== undefined) refuse(raw, 'handshake');
    });
    raw.allowHalfOpen = false; // as on any TLS listener: who stops sending has ended the connection
    useIdentity(identity);
    hand(raw);
  };
}

/** Connections that are open keep what they were served with. */
function identityInForce(server: TlsServer): (identity: RatlsIdentity) => void {
  let inForce: RatlsIdentity | undefined;
  return (identity) => {
    if (identity === inForce) return;
    server.setSecureContext({ ...TLS, cert: identity.cert, key: identity.key });
    inForce = identity;
  };
}
