// Small things that the checks of streams share.

import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Transport } from '../../../signer/native/transport.ts';

export function echo(socket: Socket): void {
  socket.on('error', () => undefined).pipe(socket);
}

/** Everything until the other end's end. Not an iteration, which would destroy both directions. */
export async function received(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => void chunks.push(chunk));
  if (!socket.readableEnded) await once(socket, 'end');
  return Buffer.concat(chunks).toString();
}

/** Resolves when the socket has closed, with an error or without; what still comes is dropped. */
export function closed(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (socket.closed) resolve();
  socket.on('error', () => undefined).once('close', () => resolve());
  socket.resume();
  return promise;
}

/** Send a text and the end; everything that comes back. */
export async function exchange(transport: Transport, port: number, text: string): Promise<string> {
  const socket = await transport.connect(port);
  socket.end(text);
  const answer = await received(socket);
  await closed(socket);
  return answer;
}
