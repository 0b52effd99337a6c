// A client of the RA-TLS listener as the parent's proxy makes it: a PROXY header, then TLS. It verifies nothing by
// itself; tests do.

import { once } from 'node:events';
import http from 'node:http';
import type { Socket } from 'node:net';
import tls, { type TLSSocket } from 'node:tls';
import { encodeProxyHeader } from '../../parent-proxy/forwarding/ingress.ts';
import type { Transport } from '../../signer/native/transport.ts';

export const RATLS_PORT = 9443;
const PARENT = { address: '10.0.0.5', port: 9443 };

export interface RatlsClientOptions {
  /** The client's, as the PROXY header has it. */
  readonly from?: string;
  /** Instead of the header for that address. */
  readonly preamble?: Buffer;
  readonly tls?: tls.ConnectionOptions;
}

export interface RatlsAnswer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface RatlsClient {
  readonly socket: TLSSocket;
  /** DER of the certificate it was shown. */
  readonly certificate: Buffer;
  /** Over this one connection. */
  get(path: string, headers?: http.OutgoingHttpHeaders): Promise<RatlsAnswer>;
  post(path: string, body: string, headers?: http.OutgoingHttpHeaders): Promise<RatlsAnswer>;
  close(): Promise<void>;
}

export function proxyHeaderFrom(address: string): Buffer {
  return encodeProxyHeader({ source: { address, port: 51_234 }, destination: PARENT });
}

/** @throws what TLS throws, and when the signer cuts the connection */
export async function connectRatls(parent: Transport, options: RatlsClientOptions = {}): Promise<RatlsClient> {
  const raw = await parent.connect(RATLS_PORT);
  raw.write(options.preamble ?? proxyHeaderFrom(options.from ?? '203.0.113.7'));
  const socket = await handshake(raw, options.tls);
  const certificate = socket.getPeerX509Certificate()?.raw;
  if (certificate === undefined) throw new Error('the signer showed no certificate');
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  agent.createConnection = () => socket;
  return {
    socket,
    certificate,
    get: (path, headers = {}) => ask({ agent, path, headers }),
    post: (path, body, headers = {}) => ask({ agent, path, headers, method: 'POST' }, body),
    async close() {
      if (socket.closed) return;
      socket.destroy();
      await once(socket, 'close');
    },
  };
}

/** TLS 1.3 over a stream, without any check of the certificate. */
export async function handshake(raw: Socket, options: tls.ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = tls.connect({
    socket: raw,
    rejectUnauthorized: false,
    minVersion: 'TLSv1.3',
    ALPNProtocols: ['http/1.1'],
    ...options,
  });
  try {
    await once(socket, 'secureConnect');
  } catch (error) {
    socket.destroy();
    raw.destroy();
    throw error;
  }
  socket.on('error', () => undefined); // what was asked for then fails, and says so
  return socket;
}

async function ask(options: http.RequestOptions, sent?: string): Promise<RatlsAnswer> {
  const request = http.request({ host: 'signer', ...options });
  request.end(sent);
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  const body = Buffer.concat(await Array.fromAsync(response as AsyncIterable<Buffer>));
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}
