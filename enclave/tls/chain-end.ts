// When the chain of a client's certificate ends: a handshake looks at the times of all authorities, and a connection
// that is kept alive outlives them. It trusts the handshake to have verified the chain.

import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';

/** OpenSSL verifies no longer chain. */
const MAX_CHAIN_CERTIFICATES = 100;

/**
 * The earliest end of the authorities above the certificate that a trusted peer has shown; milliseconds since the Unix
 * epoch. Infinity where they say none: the peer sent others than those that it was verified by.
 * @param now when the handshake ended
 */
export function chainEndOf(socket: Pick<TLSSocket, 'getPeerCertificate'>, now: number): number {
  let end = Number.POSITIVE_INFINITY;
  let one: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  for (let count = 1; count < MAX_CHAIN_CERTIFICATES; count++) {
    const above: DetailedPeerCertificate | undefined = one?.issuerCertificate;
    if (above === undefined || above === one || above.fingerprint256 === one?.fingerprint256) break;
    end = Math.min(end, Date.parse(above.valid_to));
    one = above;
  }
  // An authority that was over already is not in the chain that passed: OpenSSL has found another way to the root.
  return end >= now ? end : Number.POSITIVE_INFINITY;
}
