// One request through the tunnel, over a verified connection, both ways as they come and with limits. Nothing is asked
// twice. Requests that a web page may have caused are refused, because the tunnel adds a token.

import { randomUUID } from 'node:crypto';
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { requestPath } from '../../common/formats/request-path.ts';
import { createDeadline, type Deadline } from '../deadline.ts';
import { answerHeaders, requestHeaders } from './headers.ts';
import { type Lease, PoolError } from './lease.ts';
import type { ConnectionPool } from './pool.ts';

export interface ForwardOptions {
  readonly pool: Pick<ConnectionPool, 'acquire'>;
  readonly host: string;
  readonly authorization: string;
  readonly maxBodyBytes: number;
  readonly timeoutSeconds: number;
  readonly hostNames: ReadonlySet<string> | undefined;
  readonly log: (line: string) => void;
}

/** Refusals of the tunnel itself, in the shape of the signer's (specification/signing.md#errors). */
const REFUSALS = {
  malformed_request: { status: 400, message: 'this is not a request that the tunnel understands' },
  foreign_origin: { status: 403, message: 'the tunnel serves programs on this machine, not web pages or other names' },
  body_too_large: { status: 413, message: 'the request body is larger than the tunnel passes on' },
  enclave_failed: {
    status: 502,
    message: 'the connection to the enclave ended; the request may have been carried out',
  },
  enclave_unreachable: { status: 503, message: 'the enclave cannot be reached now' },
  enclave_unverified: { status: 503, message: 'what answers does not verify as the enclave; nothing was sent to it' },
  tunnel_busy: { status: 503, message: 'every connection to the enclave is in use' },
  enclave_timeout: {
    status: 504,
    message: 'the enclave did not answer in time; the request may have been carried out',
  },
} as const;
type Refusal = keyof typeof REFUSALS;

class BodyTooLarge extends Error {}
/** A character in a target or a header with which no request can be made. */
class Unsendable extends Error {}

export async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardOptions,
): Promise<void> {
  const refusal = refuseAtOnce(request, options);
  if (refusal !== undefined) return refuse(request, response, refusal, options);
  const deadline = createDeadline(options.timeoutSeconds);
  deadline.set();
  const onClose = (): void => {
    if (!response.writableFinished) deadline.end(); // the client went away
  };
  response.once('close', onClose);
  try {
    const lease = await options.pool.acquire(deadline.signal);
    await exchange(request, response, lease, deadline, options);
  } catch (error) {
    refuse(request, response, refusalOf(error, deadline), options);
  } finally {
    response.off('close', onClose);
    deadline.end();
  }
}

async function exchange(
  request: IncomingMessage,
  response: ServerResponse,
  lease: Lease,
  deadline: Deadline,
  options: ForwardOptions,
): Promise<void> {
  const { maxBodyBytes } = options;
  const outgoing = begin(request, lease, options);
  const closed = new Promise<void>((resolve) => void outgoing.once('close', resolve));
  const cancel = (): void => void outgoing.destroy();
  deadline.signal.addEventListener('abort', cancel, { once: true });
  if (deadline.signal.aborted) cancel(); // its event would never come
  let whole = false;
  try {
    const answer = await ask(request, outgoing, limited(deadline, maxBodyBytes));
    response.writeHead(answer.statusCode ?? 502, answerHeaders(answer.headers));
    await pipeline(answer, limited(deadline, maxBodyBytes), response);
    whole = answer.complete && outgoing.writableFinished;
  } finally {
    deadline.signal.removeEventListener('abort', cancel);
    if (!whole) outgoing.destroy();
    await closed; // then nothing of it is on the connection any more
    lease.release(whole);
  }
}

/** Nothing is sent yet. @throws Unsendable, and the connection is free again */
function begin(
  { method, url: path, headers }: IncomingMessage,
  lease: Lease,
  { host, authorization }: ForwardOptions,
): ReturnType<typeof httpRequest> {
  try {
    return httpRequest({
      createConnection: () => lease.socket,
      method,
      path,
      headers: requestHeaders(headers, host, authorization),
    });
  } catch {
    lease.release(true);
    throw new Unsendable();
  }
}

type Meter = (source: AsyncIterable<Buffer>) => AsyncGenerator<Buffer>;

function ask(
  request: IncomingMessage,
  outgoing: ReturnType<typeof httpRequest>,
  meter: Meter,
): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.once('response', resolve);
  outgoing.on('error', reject);
  outgoing.once('close', () => reject(new Error('the connection was closed')));
  // After an answer a failure of the body is of no interest. The client's side is left open, for the answer.
  const body = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  if (hasBody(request)) pipeline(Readable.from(meter(body)), outgoing).catch(reject);
  else outgoing.end();
  return promise;
}

/** Each byte that moves restarts the time limit; more bytes than the limit end the transfer. */
function limited(deadline: Deadline, maxBytes: number): Meter {
  return async function* meter(source) {
    let bytes = 0;
    for await (const chunk of source) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new BodyTooLarge();
      deadline.set();
      yield chunk;
    }
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function refuseAtOnce({ url = '', headers }: IncomingMessage, options: ForwardOptions): Refusal | undefined {
  if (!url.startsWith('/')) return 'malformed_request';
  // A page in a browser of this machine: by its origin, or, when its name was made to lead here, by the Host header.
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) return 'foreign_origin';
  if (options.hostNames !== undefined && !options.hostNames.has(nameOf(headers.host ?? ''))) return 'foreign_origin';
  return Number(headers['content-length'] ?? 0) > options.maxBodyBytes ? 'body_too_large' : undefined;
}

function nameOf(host: string): string {
  return host.replace(/:\d+$/, '').toLowerCase();
}

function refusalOf(error: unknown, deadline: Deadline): Refusal {
  if (error instanceof BodyTooLarge) return 'body_too_large';
  if (error instanceof Unsendable) return 'malformed_request';
  if (deadline.expired) return 'enclave_timeout';
  if (!(error instanceof PoolError)) return 'enclave_failed';
  if (error.code === 'busy') return 'tunnel_busy';
  return error.code === 'unverified' ? 'enclave_unverified' : 'enclave_unreachable';
}

/** Never an error in place of it, as the signer (specification/signing.md#public-keys). */
const LIST_OF_KEYS = '/api/v1/eth2/publicKeys';

/** When the answer has begun it can only be cut off. */
function refuse(request: IncomingMessage, response: ServerResponse, reason: Refusal, { log }: ForwardOptions): void {
  if (response.destroyed || response.writableEnded) return; // the client is gone, or has all of its answer
  log(`${request.method} refused: ${reason}`);
  if (response.headersSent || requestPath(request.url) === LIST_OF_KEYS) return void response.destroy();
  const { status: code, message } = REFUSALS[reason];
  const given = request.headers['x-request-id'];
  const request_id = typeof given === 'string' && /^[\x20-\x7e]{1,128}$/.test(given) ? given : randomUUID();
  const body = JSON.stringify({ code, reason, message, request_id });
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': request_id,
    connection: 'close',
  };
  response.writeHead(code, { ...headers, ...(code === 503 ? { 'retry-after': '1' } : {}) }).end(body);
  request.resume();
}
