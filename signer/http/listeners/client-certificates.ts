// Client certificates of the TLS listener. The handshake refuses none: each request decides, so the answer can give the
// reason (specification/authorization.md#client-certificates). A connection is trusted under the CA of its handshake,
// until that CA is no longer in force or an authority of the chain expires.

import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import type { Log } from '../../../common/observe/log.ts';
import type { ErrorReason } from '../../api/errors.ts';
import { type ClientCertificate, readClientCertificate } from '../../tls/client-certificate.ts';
import { rememberConnection, streamOf } from '../context.ts';

export interface AskForClients {
  readonly caInForce: () => unknown;
  readonly now: () => number;
  /** Why no client with this certificate is served. Undefined: every connection is. */
  readonly refusal: ((certificate: ClientCertificate | undefined, peer: string | undefined) => Refusal) | undefined;
  readonly log: Log;
}

type Refusal = ErrorReason | undefined;

/** @param server one that asks for certificates and lets the handshake end without a good one */
export function rememberClients(server: TlsServer, { caInForce, now, refusal, log }: AskForClients): void {
  const beganUnder = new WeakMap<Socket, { readonly ca: unknown }>();
  server.prependListener('connection', (raw: Socket) => beganUnder.set(raw, { ca: caInForce() }));
  server.prependListener('secureConnection', (socket: TLSSocket) => {
    const raw = streamOf(socket);
    const began = raw && beganUnder.get(raw);
    const wasTrusted = socket.authorized && began !== undefined;
    const chainEnd = wasTrusted ? chainEndOf(socket, now()) : 0;
    const isTrusted = (): boolean => wasTrusted && began.ca === caInForce() && now() <= chainEnd;
    const shown = socket.getPeerX509Certificate();
    const clientCertificate = shown && readClientCertificate(shown, { now, isTrusted });
    const peerAddress = socket.remoteAddress;
    rememberConnection(socket, { peerAddress, ...(clientCertificate === undefined ? {} : { clientCertificate }) });
    const reason = refusal?.(clientCertificate, peerAddress);
    if (reason === undefined) return;
    log.info({ reason, client_ip: peerAddress }, 'connection refused: tls.client_auth is required');
    socket.destroy();
  });
}

// A handshake looks at the times of all authorities, and a connection that is kept alive outlives them.

/** OpenSSL verifies no longer chain. */
const MAX_CHAIN_CERTIFICATES = 100;

/**
 * The earliest end of the authorities above the certificate; Infinity where the peer sent others than those that it was
 * verified by. @param now when the handshake ended
 */
function chainEndOf(socket: Pick<TLSSocket, 'getPeerCertificate'>, now: number): number {
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
