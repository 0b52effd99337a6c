// Client certificates of the TLS listener. The handshake asks for a certificate and refuses none. Each request decides
// what the client may do, so the answer can give the reason (specification/authorization.md#client-certificates). Where
// a known client is required, every other connection ends before its first request. A connection is trusted under the
// CA with which its handshake began. This trust ends when that CA is no longer in force, or when an authority of the
// chain expires.

import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Log } from '../../../observe/log.ts';
import type { ErrorReason } from '../../api/errors.ts';
import { chainEndOf } from '../../tls/chain-end.ts';
import { type ClientCertificate, readClientCertificate } from '../../tls/client-certificate.ts';
import { rememberConnection, streamOf } from './connections.ts';

export interface AskForClients {
  /** What CA is in force; another value after each change of it. */
  readonly caInForce: () => unknown;
  /** Milliseconds since the Unix epoch. */
  readonly now: () => number;
  /** Why nobody with this certificate is served. Undefined: every connection is. */
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
