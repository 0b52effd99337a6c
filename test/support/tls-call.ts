// HTTPS requests of a client with a certificate, over connections that a test keeps or gives up.

import { Agent, request } from 'node:https';
import type { ConnectionOptions } from 'node:tls';

export interface TlsAnswer {
  readonly status: number | undefined;
  readonly reason: unknown;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly reused: boolean;
}

/** One connection at a time, kept. */
export function keptConnection(identity: ConnectionOptions = {}): Agent {
  const { cert, key, maxVersion } = identity;
  return new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false, cert, key, maxVersion });
}

/** @throws what the connection ended with */
export function tlsCall(url: string, agent: Agent, headers: Readonly<Record<string, string>> = {}): Promise<TlsAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<TlsAnswer>();
  const asked = request(url, { agent, headers }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    response.on('error', reject).on('end', () => {
      const body: unknown = text.startsWith('{') ? JSON.parse(text) : undefined;
      const reason = (body as { reason?: unknown } | undefined)?.reason;
      resolve({ status: response.statusCode, reason, headers: response.headers, reused: asked.reusedSocket });
    });
  });
  asked.on('error', reject).end();
  return promise;
}
