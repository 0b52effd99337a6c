// The way to the signer: nothing is sent before the peer is verified, so no token can reach a stranger. Evidence alone
// identifies an attested peer: no certificate authority does. The only file of the CLI that opens a connection; nothing
// in the environment weakens what it checks.

import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { type ConnectionOptions, checkServerIdentity, connect as connectTls, type TLSSocket } from 'node:tls';
import { AttestationFailure } from './attestation/attestation-failure.ts';
import { type AttestationPolicy, collectEvidence, type PeerEvidence } from './attestation/peer-evidence.ts';

export interface Peer {
  readonly url: URL;
  /** PEM, instead of the public authorities that Node knows. */
  readonly trustedCertificates: Buffer | undefined;
  /** The name to ask for and to find in the certificate, instead of the URL's. */
  readonly serverName: string | undefined;
  /** Set: the enclave has to be attested, and authorities are not asked. */
  readonly attestation: AttestationPolicy | undefined;
}

export interface AttestedPeer {
  readonly url: URL;
  readonly attestation: AttestationPolicy;
}

export interface AttestedConnection {
  readonly socket: Socket;
  readonly expiresAt: number;
}

/**
 * @param signal ends the attempt, and later the connection
 * @throws the socket's own error, or an AttestationFailure; no request was sent then
 */
export async function connect(peer: Peer, signal: AbortSignal): Promise<Socket> {
  const { url, attestation } = peer;
  if (attestation !== undefined) return (await connectAttested({ url, attestation }, signal)).socket;
  return open((onReady) => dial(peer, onReady), signal);
}

/** @throws the socket's own error, or an AttestationFailure: also when the verdict is only "not expected" */
export async function connectAttested(peer: AttestedPeer, signal: AbortSignal): Promise<AttestedConnection> {
  return withAttestedSocket(peer, signal, async (socket) => {
    const inquiry = {
      host: peer.url.host,
      signal,
      accepts: ({ expected }: { readonly expected: boolean }) => expected,
    };
    const { certificate, fresh, expiresAt } = await collectEvidence(socket, peer.attestation, inquiry);
    if (!certificate.expected) throw new AttestationFailure(certificate, `the peer at ${peer.url.origin}`);
    if (fresh?.expected !== true)
      throw new AttestationFailure(fresh ?? certificate, `the connection to ${peer.url.origin}`);
    return { socket, expiresAt };
  });
}

/**
 * What the peer proves, for a report: also when it is not the expected signer. The connection is closed.
 * @throws the socket's own error
 */
export async function examine({ url, attestation }: AttestedPeer, signal: AbortSignal): Promise<PeerEvidence> {
  return withAttestedSocket({ url, attestation }, signal, async (socket) => {
    const inquiry = { host: url.host, signal, accepts: ({ authentic }: { readonly authentic: boolean }) => authentic };
    const evidence = await collectEvidence(socket, attestation, inquiry);
    socket.destroy();
    return evidence;
  });
}

/** The connection does not outlive a use that throws. */
async function withAttestedSocket<T>(
  { url }: AttestedPeer,
  signal: AbortSignal,
  use: (socket: TLSSocket) => Promise<T>,
): Promise<T> {
  const socket = await open((onReady) => dialAttested(url, onReady), signal);
  socket.on('error', () => undefined); // between requests there is no other listener; the next one sees it closed
  try {
    return await use(socket);
  } catch (error) {
    socket.destroy();
    throw error;
  }
}

async function open<T extends Socket>(begin: (onReady: () => void) => T, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted(); // its event would never come
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const socket = begin(() => resolve(socket));
  const onClose = (): void => reject(new Error('the connection was closed'));
  socket.once('error', reject).once('close', onClose);
  const end = (): void => void socket.destroy();
  signal.addEventListener('abort', end, { once: true });
  // A tunnel's signal lives as long as it does: it would keep every connection that ever was.
  socket.once('close', () => signal.removeEventListener('abort', end));
  await promise;
  socket.off('error', reject).off('close', onClose);
  return socket;
}

function dial({ url, trustedCertificates, serverName }: Peer, onReady: () => void): Socket {
  const host = hostOf(url);
  if (url.protocol === 'http:') return connectPlain({ host, port: Number(url.port || 80) }, onReady);
  const name = serverName ?? host;
  return connectTls(
    {
      ...tlsOptions(url, name),
      // Said here, because without a server name Node would compare the certificate with the host that is connected to.
      checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
      ...(trustedCertificates === undefined ? {} : { ca: trustedCertificates }),
      minVersion: 'TLSv1.2',
      rejectUnauthorized: true, // said here, so that NODE_TLS_REJECT_UNAUTHORIZED cannot say otherwise
    },
    onReady,
  );
}

/** The evidence is what is verified. TLS 1.3 for the exporter (RFC 8446 §7.5). */
function dialAttested(url: URL, onReady: () => void): TLSSocket {
  return connectTls({ ...tlsOptions(url, hostOf(url)), minVersion: 'TLSv1.3', rejectUnauthorized: false }, onReady);
}

function tlsOptions(url: URL, name: string): ConnectionOptions {
  return {
    host: hostOf(url),
    port: Number(url.port || 443),
    // RFC 6066 §3: an address is no server name to ask for.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    ALPNProtocols: ['http/1.1'],
  };
}

function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}
