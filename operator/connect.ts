// The way to the signer: connect, verify the peer, and only then hand the connection out. Nothing is sent before the peer
// is verified, so no token can reach a stranger. Attestation of an enclave's peer (RA-TLS) belongs here, after the TLS
// handshake. The only file of the CLI that opens a connection; nothing in the environment weakens what it checks.

import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls } from 'node:tls';

export interface Peer {
  /** https:, or http: where plaintext was allowed. */
  readonly url: URL;
  /** PEM, instead of the public authorities that Node knows. */
  readonly trustedCertificates: Buffer | undefined;
  /** The name to ask for and to find in the certificate, instead of the URL's. */
  readonly serverName: string | undefined;
}

/**
 * @param signal ends the attempt, and later the connection
 * @throws the socket's own error; nothing was sent then
 */
export async function connect(peer: Peer, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted(); // its event would never come
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = open(peer, () => resolve(socket));
  const onClose = (): void => reject(new Error('the connection was closed'));
  socket.once('error', reject).once('close', onClose);
  signal.addEventListener('abort', () => socket.destroy(), { once: true });
  await promise;
  socket.off('error', reject).off('close', onClose);
  return socket;
}

function open({ url, trustedCertificates, serverName }: Peer, onReady: () => void): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, ''); // an IPv6 address without its brackets
  if (url.protocol === 'http:') return connectPlain({ host, port: Number(url.port || 80) }, onReady);
  const name = serverName ?? host;
  return connectTls(
    {
      host,
      port: Number(url.port || 443),
      // RFC 6066 §3: an address is no server name to ask for.
      ...(isIP(name) === 0 ? { servername: name } : {}),
      // Said here, because without a server name Node would compare the certificate with the host that is connected to.
      checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
      ...(trustedCertificates === undefined ? {} : { ca: trustedCertificates }),
      ALPNProtocols: ['http/1.1'],
      minVersion: 'TLSv1.2',
      rejectUnauthorized: true, // said here, so that NODE_TLS_REJECT_UNAUTHORIZED cannot say otherwise
    },
    onReady,
  );
}
