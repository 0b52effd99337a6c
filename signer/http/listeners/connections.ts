// What is known of a connection beside its bytes. Behind a transport the socket has no address: the PROXY header's is
// remembered here (specification/enclave.md#shape).

import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Places } from '../../../common/formats/places.ts';
import type { ClientCertificate } from '../../tls/client-certificate.ts';

export interface AttestedIdentity {
  readonly spki: Buffer;
}

export interface ConnectionFacts {
  /** Undefined when the peer has none that counts: then no token that is bound to addresses is good. */
  readonly peerAddress: string | undefined;
  readonly identity?: AttestedIdentity;
  readonly clientCertificate?: ClientCertificate;
}

const factsOf = new WeakMap<Socket, ConnectionFacts>();

export function rememberConnection(socket: Socket, facts: ConnectionFacts): void {
  factsOf.set(socket, facts);
}

/** Undefined when there is none, or the socket is gone. */
export function peerAddressOf(socket: Socket): string | undefined {
  const facts = factsOf.get(socket);
  return facts === undefined ? socket.remoteAddress : facts.peerAddress;
}

export function attestedIdentityOf(socket: Socket): AttestedIdentity | undefined {
  return factsOf.get(socket)?.identity;
}

export function clientCertificateOf(socket: Socket): ClientCertificate | undefined {
  return factsOf.get(socket)?.clientCertificate;
}

/** The stream under TLS. Where Node did not keep it, no RA-TLS connection would be served, and no chain trusted. */
export function streamOf(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { readonly _parent?: Socket })._parent;
}

// When a listener has no place left, the oldest connection without an admitted request goes (common/formats/places.ts).

export interface ConnectionLimits {
  readonly handshakeTimeoutMs: number;
  readonly headersTimeoutMs: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = { handshakeTimeoutMs: 10_000, headersTimeoutMs: 15_000 };
const CHECKS = 4;

export function headerTimes(
  headersTimeout: number,
): Required<Pick<ServerOptions, 'headersTimeout' | 'connectionsCheckingInterval'>> {
  return { headersTimeout, connectionsCheckingInterval: Math.ceil(headersTimeout / CHECKS) };
}

export type LostPlace = 'displaced' | 'limit';

const placesOf = new WeakMap<Socket, Places<Socket>>();

export function takePlace(
  places: Places<Socket>,
  socket: Socket,
  address: string | undefined,
  onLost: (why: LostPlace) => void,
): boolean {
  const displaced = places.enter(socket, address);
  if (displaced !== undefined) {
    onLost(displaced === socket ? 'limit' : 'displaced');
    displaced.destroy();
  }
  if (displaced === socket) return false;
  placesOf.set(socket, places);
  socket.once('close', () => places.leave(socket));
  return true;
}

/** The address of its client has become known. @param socket that took the place */
export function namePlace(socket: Socket, address: string | undefined): void {
  placesOf.get(socket)?.name(socket, address);
}

/** From now on it is not displaced. @param socket the one that requests are read from */
export function settlePlace(socket: Socket): void {
  const stream = streamOf(socket as TLSSocket) ?? socket;
  const places = placesOf.get(stream);
  if (places === undefined) return;
  places.settle(stream);
  placesOf.delete(stream);
}
