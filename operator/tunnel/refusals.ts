// Refusals of a tunnel itself, in the shape of the signer's (specification/signing.md#errors). Requests that a web page
// may have caused are refused at once, because a tunnel adds a token.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { requestPath } from '../../common/formats/request-path.ts';

const REFUSALS = {
  malformed_request: { status: 400, message: 'this is not a request that the tunnel understands' },
  foreign_origin: { status: 403, message: 'the tunnel serves programs on this machine, not web pages or other names' },
  not_found: { status: 404, message: 'there is nothing at this address of the tunnel' },
  unknown_key: { status: 404, message: 'no share of this public key is at enough participants' },
  body_too_large: { status: 413, message: 'the request body is larger than the tunnel passes on' },
  enclave_failed: {
    status: 502,
    message: 'the connection to the enclave ended; the request may have been carried out',
  },
  enclave_unreachable: { status: 503, message: 'the enclave cannot be reached now' },
  enclave_unverified: { status: 503, message: 'what answers does not verify as the enclave; nothing was sent to it' },
  participants_unreachable: { status: 503, message: 'fewer participants than the threshold signed in time' },
  tunnel_busy: { status: 503, message: 'the tunnel has as much under way as it may' },
  enclave_timeout: {
    status: 504,
    message: 'the enclave did not answer in time; the request may have been carried out',
  },
} as const;
export type TunnelRefusal = keyof typeof REFUSALS;

interface Admission {
  readonly maxBodyBytes: number;
  readonly hostNames: ReadonlySet<string> | undefined;
}

export function refuseAtOnce({ url = '', headers }: IncomingMessage, options: Admission): TunnelRefusal | undefined {
  if (!url.startsWith('/')) return 'malformed_request';
  // A page in a browser of this machine: by its origin, or, when its name was made to lead here, by the Host header.
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) return 'foreign_origin';
  if (options.hostNames !== undefined && !options.hostNames.has(nameOf(headers.host ?? ''))) return 'foreign_origin';
  return Number(headers['content-length'] ?? 0) > options.maxBodyBytes ? 'body_too_large' : undefined;
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}

/** Never an error in place of it, as the signer (specification/signing.md#public-keys). */
export const LIST_OF_KEYS = '/api/v1/eth2/publicKeys';

export function refusalBody(reason: TunnelRefusal) {
  const { status: code, message } = REFUSALS[reason];
  return { code, reason, message };
}

/** When the answer has begun it can only be cut off. */
export function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  reason: TunnelRefusal,
  log: (line: string) => void,
): void {
  if (response.destroyed || response.writableEnded) return; // the client is gone, or has all of its answer
  log(`${request.method} refused: ${reason}`);
  if (response.headersSent || requestPath(request.url) === LIST_OF_KEYS) return void response.destroy();
  const body = refusalBody(reason);
  const given = request.headers['x-request-id'];
  const request_id = typeof given === 'string' && /^[\x20-\x7e]{1,128}$/.test(given) ? given : randomUUID();
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': request_id,
    connection: 'close',
  };
  response.writeHead(body.code, { ...headers, ...(body.code === 503 ? { 'retry-after': '1' } : {}) });
  response.end(JSON.stringify({ ...body, request_id }));
  request.resume();
}
