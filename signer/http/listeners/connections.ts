// What is known of a connection beside its bytes. Behind a transport the socket has no address: the listener that read
// the PROXY header remembers it here (specification/enclave.md#shape).

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
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
