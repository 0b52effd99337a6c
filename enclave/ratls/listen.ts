// The RA-TLS listener: PROXY header, TLS 1.3 with an attested certificate, the application's routes. Without valid
// evidence it serves no new connection (specification/evidence.md#tls).

import { constants } from 'node:crypto';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import {
  PROXY_PREAMBLE_BYTES,
  type ProxyHeader,
  type ProxyHeaderRefusal,
  parseProxyHeader,
  proxyHeaderBytes,
} from '../../common/formats/proxy-header.ts';
import type { Log } from '../../common/observe/log.ts';
import { type ConnectionFacts, rememberConnection, streamOf } from '../../signer/http/context.ts';
import { handshakeTurns } from '../../signer/http/listeners/handshakes.ts';
import { createTlsServer } from '../../signer/http/listeners/listen.ts';
import {
  serveTransport,
  type TransportServer,
  type TransportServerOptions,
} from '../../signer/http/listeners/transport-server.ts';
import { CONNECTION_LIMITS, type ConnectionLimits, headerTimes, namePlace } from '../../signer/http/places.ts';
import type { RatlsIdentity } from './identity.ts';
import type { IdentitySource } from './rotation.ts';

const REFUSED_CONNECTIONS = ['limit', 'displaced', 'proxy_header', 'no_evidence', 'handshake'] as const;
export type RefusedConnection = (typeof REFUSED_CONNECTIONS)[number];

interface RatlsListenOptions extends Omit<TransportServerOptions, 'prepare' | 'onLostPlace'> {
  readonly identities: IdentitySource;
  readonly log: Log;
  readonly onRefused?: (reason: RefusedConnection) => void;
  readonly limits?: Partial<RatlsLimits>;
}

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
    onLostPlace: (why) => options.onRefused?.(why),
  });
}

interface AcceptParts {
  readonly server: TlsServer;
  readonly identities: IdentitySource;
  readonly limits: RatlsLimits;
  readonly refuse: (socket: Socket, reason: RefusedConnection, problem?: string) => void;
}

interface Handshake {
  facts: ConnectionFacts | undefined;
  readonly deadline: NodeJS.Timeout;
}

function acceptor({ server, identities, limits, refuse }: AcceptParts) {
  const handshakes = new WeakMap<Socket, Handshake>();
  const useIdentity = identityInForce(server);
  const turns = handshakeTurns();
  const end = (raw: Socket): Handshake | undefined => {
    const handshake = handshakes.get(raw);
    clearTimeout(handshake?.deadline);
    handshakes.delete(raw);
    return handshake;
  };

  server.prependListener('secureConnection', (secure: TLSSocket) => {
    const raw = streamOf(secure);
    const handshake = raw && end(raw);
    if (handshake?.facts === undefined) secure.destroy();
    else rememberConnection(secure, handshake.facts);
  });

  return async (raw: Socket, hand: (socket: Socket) => void): Promise<void> => {
    const header = await readProxyHeader(raw, limits.proxyHeaderTimeoutMs);
    if (header.kind === 'refused') return refuse(raw, 'proxy_header', header.problem);
    if (identities.current() === undefined) return refuse(raw, 'no_evidence');
    const peerAddress = header.kind === 'proxied' ? header.source.address : undefined;
    namePlace(raw, peerAddress);
    const deadline = setTimeout(() => raw.destroy(), limits.handshakeTimeoutMs);
    const handshake: Handshake = { facts: undefined, deadline };
    handshakes.set(raw, handshake);
    raw.once('close', () => {
      if (end(raw) !== undefined) refuse(raw, 'handshake');
    });
    raw.allowHalfOpen = false; // as on any TLS listener: who stops sending has ended the connection
    turns.await(raw, peerAddress, () => {
      const identity = identities.current(); // it may be another one since the connection came, or none
      if (identity === undefined) return void raw.destroy();
      handshake.facts = { peerAddress, identity };
      useIdentity(identity);
      hand(raw);
    });
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

// Takes exactly the PROXY header off the beginning of a stream, or refuses the peer.

export async function readProxyHeader(socket: Socket, timeoutMs: number): Promise<ProxyHeader | ProxyHeaderRefusal> {
  const { promise: late, resolve: expire } = Promise.withResolvers<undefined>();
  const timer = setTimeout(expire, timeoutMs, undefined);
  try {
    const preamble = await readExactly(socket, PROXY_PREAMBLE_BYTES, late);
    if (!Buffer.isBuffer(preamble)) return preamble;
    const total = proxyHeaderBytes(preamble);
    if (typeof total !== 'number') return total;
    const rest = total - PROXY_PREAMBLE_BYTES;
    const body = rest === 0 ? Buffer.alloc(0) : await readExactly(socket, rest, late);
    return Buffer.isBuffer(body) ? parseProxyHeader(Buffer.concat([preamble, body])) : body;
  } finally {
    clearTimeout(timer);
  }
}

async function readExactly(
  socket: Socket,
  bytes: number,
  late: Promise<undefined>,
): Promise<Buffer | ProxyHeaderRefusal> {
  const { promise: result, resolve } = Promise.withResolvers<Buffer | ProxyHeaderRefusal>();
  const look = (): void => {
    const chunk = socket.read(bytes) as Buffer | null;
    if (chunk !== null) resolve(chunk.length === bytes ? chunk : refused('the stream ended in its PROXY header'));
  };
  const onEnd = (): void => resolve(refused('the stream ended before its PROXY header'));
  socket.on('readable', look);
  socket.once('end', onEnd);
  socket.once('close', onEnd);
  look();
  try {
    return (await Promise.race([result, late])) ?? refused('no PROXY header in time');
  } finally {
    socket.off('readable', look);
    socket.off('end', onEnd);
    socket.off('close', onEnd);
  }
}

function refused(problem: string): ProxyHeaderRefusal {
  return { kind: 'refused', problem };
}
