// What is known of a connection beside its bytes. Behind a transport the socket has no address: the listener that read
// the PROXY header remembers it here, and everything that asks who the peer is asks here: authorization, audit line,
// logs (specification/enclave.md#shape).

import type { Socket } from 'node:net';
import type { RatlsIdentity } from '../../tee/ratls/identity.ts';

export interface ConnectionFacts {
  /** Undefined when the peer has none that counts: then no token that is bound to addresses is good. */
  readonly peerAddress: string | undefined;
  /** What an RA-TLS connection was served with. */
  readonly identity?: RatlsIdentity;
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
