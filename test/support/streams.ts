// Sockets as tests talk about them: what came, that it ended, that it broke.

import { connect, type Socket } from 'node:net';

/** How a socket's life ended, and everything that arrived. */
export interface Heard {
  readonly bytes: Buffer;
  /** `ended`: the other side said that this was all. `broken`: it was cut. */
  readonly how: 'ended' | 'broken';
}

/** Reads to the end; the own side stays open. */
export async function hear(socket: Socket): Promise<Heard> {
  const chunks: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<Heard['how']>();
  socket.on('data', (bytes: Buffer) => chunks.push(bytes));
  socket.once('end', () => resolve('ended'));
  socket.once('error', () => resolve('broken'));
  socket.once('close', () => resolve('broken'));
  socket.resume();
  const how = await promise;
  return { bytes: Buffer.concat(chunks), how };
}

/** The next so many bytes, and what came with them; then it reads no more. */
export async function hearBytes(socket: Socket, count: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const take = (bytes: Buffer): void => {
    chunks.push(bytes);
    length += bytes.length;
    if (length >= count) resolve();
  };
  const fail = (): void => reject(new Error(`the stream ended after ${length} of ${count} bytes`));
  socket.on('data', take).once('end', fail).once('close', fail);
  socket.resume();
  await promise;
  socket.pause();
  socket.off('data', take).off('end', fail).off('close', fail);
  return Buffer.concat(chunks);
}

export async function dial(port: number, host = '127.0.0.1'): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket = connect({ port, host, allowHalfOpen: true }, resolve);
  socket.once('error', reject);
  await promise;
  socket.off('error', reject).on('error', () => undefined);
  return socket;
}

export async function closed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise<void>((resolve) => void socket.once('close', () => resolve()));
}
