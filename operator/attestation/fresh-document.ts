// The nonce route of an enclave (specification/evidence.md#nonce), over a connection that is there already. It sends no
// token and nothing else than the nonce. A 503, which says that the queue is full, is asked again a few times.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { DOCUMENT_MEDIA_TYPE } from '../../common/attestation/contract.ts';
import { MAX_DOCUMENT_BYTES } from '../../common/attestation/document.ts';
import { EXIT } from '../../common/command-line/exit-codes.ts';
import { CommandFailure } from '../exit.ts';

const NONCE_ROUTE = '/api/v1/attestation';
const RETRY_DELAYS_MS: readonly number[] = [100, 300, 900, 2700];
const MAX_REFUSAL_BYTES = 64 * 1024;

interface DocumentRequest {
  readonly host: string;
  readonly clientNonce: Uint8Array;
  readonly signal: AbortSignal;
}

/** @throws CommandFailure when the route refuses; the socket's own error */
export async function fetchDocument(socket: Socket, request: DocumentRequest): Promise<Buffer> {
  for (const delayMs of [...RETRY_DELAYS_MS, undefined]) {
    const { status, body } = await ask(socket, request);
    if (status === 200) return body;
    if (status !== 503) throw refused(status);
    if (delayMs !== undefined) await delay(delayMs, undefined, { signal: request.signal });
  }
  throw new CommandFailure(EXIT.refused, 'the enclave is too busy to attest itself', 'try again in a moment');
}

interface Reply {
  readonly status: number;
  readonly body: Buffer;
}

function ask(socket: Socket, { host, clientNonce }: DocumentRequest): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const path = `${NONCE_ROUTE}?nonce=${Buffer.from(clientNonce).toString('hex')}`;
  const headers = { host, connection: 'keep-alive', accept: DOCUMENT_MEDIA_TYPE };
  const outgoing = httpRequest({ createConnection: () => socket, method: 'GET', path, headers });
  let reply: Promise<Reply> | undefined;
  outgoing.on('error', reject);
  outgoing.on('response', (response) => {
    reply = readReply(response);
    reply.catch(reject);
  });
  // Wait for the close event: only then is nothing of this request left on the connection.
  outgoing.on('close', () => (reply === undefined ? reject(new Error('the connection was closed')) : resolve(reply)));
  outgoing.end();
  return promise;
}

async function readReply(response: IncomingMessage): Promise<Reply> {
  const maxBytes = response.statusCode === 200 ? MAX_DOCUMENT_BYTES : MAX_REFUSAL_BYTES;
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new CommandFailure(EXIT.refused, `the answer of ${NONCE_ROUTE} is larger than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks) };
}

function refused(status: number): CommandFailure {
  return new CommandFailure(
    EXIT.refused,
    `${NONCE_ROUTE} answers HTTP ${status}: no document for this connection`,
    'does the URL lead to the RA-TLS listener of a signer of this version?',
  );
}
