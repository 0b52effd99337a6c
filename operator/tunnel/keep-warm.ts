// A request that asks for nothing, over a connection that no client uses now: it keeps the connection from being closed
// as idle, so that the next request finds a connection that is verified already. It carries no token.

import { request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';

const PATH = '/upcheck';
const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 4096;

export async function keepWarm(socket: Socket, host: string): Promise<boolean> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const headers = { host, connection: 'keep-alive' };
  const outgoing = httpRequest({
    createConnection: () => socket,
    method: 'GET',
    path: PATH,
    headers,
    timeout: TIMEOUT_MS,
  });
  let whole = false;
  outgoing.on('timeout', () => outgoing.destroy());
  outgoing.on('error', () => undefined); // it is closed then
  outgoing.on('response', (response) => {
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > MAX_ANSWER_BYTES) outgoing.destroy();
    });
    response.on('end', () => (whole = response.complete));
    response.on('error', () => undefined);
  });
  outgoing.on('close', end);
  outgoing.end();
  await ended; // then nothing of it is on the connection any more
  return whole && !socket.destroyed;
}
