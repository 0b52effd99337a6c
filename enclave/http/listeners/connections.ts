// What is known of a connection beside its bytes. Behind a transport, the socket has no address. The listener that read
// the PROXY header remembers the address here. Authorization, the audit line and the logs ask here who the peer is
// (specification/enclave.md#shape).

import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { RatlsIdentity } from '../../tee/ratls/identity.ts';
import type { ClientCertificate } from '../../tls/client-certificate.ts';

export interface ConnectionFacts {
  /** Undefined when the peer has none that counts: then no token that is bound to addresses is good. */
  readonly peerAddress: string | undefined;
  /** What an RA-TLS connection was served with. */
  readonly identity?: RatlsIdentity;
  /** What the client showed, on a listener that asks for it. */
  readonly clientCertificate?: ClientCertificate;
}

const factsOf = new WeakMap<Socket, ConnectionFacts>();

/** Before the connection's first request. @param socket the one that requests are read from */
export function rememberConnection(socket: Socket, facts: ConnectionFacts): void {
  factsOf.set(socket, facts);
}

/** Undefined when there is none, or the socket is gone. */
export function peerAddressOf(socket: Socket): string | undefined {
  const facts = factsOf.get(socket);
  return facts === undefined ? socket.remoteAddress : facts.peerAddress;
}

/** Undefined on any listener but the RA-TLS one. */
export function attestedIdentityOf(socket: Socket): RatlsIdentity | undefined {
  return factsOf.get(socket)?.identity;
}

/** Undefined when the client showed none, and where it was not asked. */
export function clientCertificateOf(socket: Socket): ClientCertificate | undefined {
  return factsOf.get(socket)?.clientCertificate;
}

/**
 * The stream that TLS was laid over. Node keeps it there since its first versions; where it did not, no RA-TLS
 * connection would be served, and no client's chain be trusted.
 */
export function streamOf(secure: TLSSocket): Socket | undefined {
  return (secure as TLSSocket & { readonly _parent?: Socket })._parent;
}
