// One request through the tunnel, over a verified connection, both ways as they come and with limits. Nothing is asked
// twice.

import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createDeadline, type Deadline } from '../deadline.ts';
import { answerHeaders, requestHeaders } from './headers.ts';
import { type Lease, PoolError } from './lease.ts';
import type { ConnectionPool } from './pool.ts';
import { refuse, refuseAtOnce, type TunnelRefusal } from './refusals.ts';

export interface ForwardOptions {
  readonly pool: Pick<ConnectionPool, 'acquire'>;
  readonly host: string;
  readonly authorization: string;
  readonly maxBodyBytes: number;
  readonly timeoutSeconds: number;
  readonly hostNames: ReadonlySet<string> | undefined;
  readonly log: (line: string) => void;
}

class BodyTooLarge extends Error {}
/** A character in a target or a header with which no request can be made. */
class Unsendable extends Error {}

export async function forward(
  request: IncomingMessage,
  response: ServerResponse,
  options: ForwardOptions,
): Promise<void> {
  const refusal = refuseAtOnce(request, options);
  if (refusal !== undefined) return refuse(request, response, refusal, options.log);
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
    refuse(request, response, refusalOf(error, deadline), options.log);
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

function refusalOf(error: unknown, deadline: Deadline): TunnelRefusal {
  if (error instanceof BodyTooLarge) return 'body_too_large';
  if (error instanceof Unsendable) return 'malformed_request';
  if (deadline.expired) return 'enclave_timeout';
  if (!(error instanceof PoolError)) return 'enclave_failed';
  if (error.code === 'busy') return 'tunnel_busy';
  return error.code === 'unverified' ? 'enclave_unverified' : 'enclave_unreachable';
}
