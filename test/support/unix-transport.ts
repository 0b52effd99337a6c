// The transport between an enclave and its parent on a machine without vsock: one Unix socket a port, in a directory
// that both sides know. What it answers is what vsock answers (specification/enclave.md#transport), so that the same
// programs run on either: nobody there, and an accept queue that is full, are both ECONNRESET at once.

import { unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import {
  type ListenOptions,
  type Transport,
  TransportError,
  type TransportListener,
} from '../../signer/native/transport.ts';
import { LONGEST_WAIT_MS } from './patience.ts';

export type Side = 'enclave' | 'parent';

const DEFAULT_BACKLOG = 1024;
/** A test that stood still for seconds has not lost its connection. */
const DEFAULT_CONNECT_TIMEOUT_MS = LONGEST_WAIT_MS;
/** sockaddr_un: 108 bytes with the NUL. */
const MAX_PATH_BYTES = 107;
/** What a Unix socket says where vsock says ECONNRESET: no file, nobody listening, a full queue. */
const NOBODY_THERE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ECONNREFUSED', 'EAGAIN', 'ENOTSOCK']);

/**
 * Each side's own ports are files of its own: `enclave-9443`, `parent-7001`. A killed process's files are taken over.
 */
export function unixTransport(directory: string, side: Side): Transport {
  const other: Side = side === 'enclave' ? 'parent' : 'enclave';
  return {
    connect: (port, options = {}) => connectTo(socketPath(directory, other, port), options),
    listen: (port, onConnection, options = {}) => listenAt(socketPath(directory, side, port), onConnection, options),
  };
}

/** The file of a port of this side. */
export function socketPath(directory: string, side: Side, port: number): string {
  const path = join(directory, `${side}-${port}`);
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw new RangeError(`too long for a Unix socket: ${path}`);
  return path;
}

async function connectTo(
  path: string,
  { timeoutMs = DEFAULT_CONNECT_TIMEOUT_MS, signal }: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
): Promise<Socket> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = connect({ path, allowHalfOpen: true });
  const fail = (error: Error): void => {
    finish();
    socket.destroy();
    reject(error);
  };
  const onError = (error: NodeJS.ErrnoException): void => fail(NOBODY_THERE.has(error.code) ? nobodyAt(path) : error);
  const onAbort = (): void => fail(new DOMException('the connect was aborted', 'AbortError'));
  const timer = setTimeout(() => fail(new TransportError('ETIMEDOUT', `connect ETIMEDOUT ${path}`)), timeoutMs);
  const finish = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
    socket.off('error', onError);
  };
  signal?.addEventListener('abort', onAbort);
  socket.on('error', onError);
  socket.once('connect', () => {
    finish();
    resolve(socket);
  });
  return await promise;
}

async function listenAt(
  path: string,
  onConnection: (socket: Socket) => void,
  { backlog = DEFAULT_BACKLOG }: ListenOptions,
): Promise<TransportListener> {
  try {
    return await listenOnce(path, onConnection, backlog);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || (await answers(path))) throw error;
    unlinkSync(path);
    return await listenOnce(path, onConnection, backlog);
  }
}

async function listenOnce(
  path: string,
  onConnection: (socket: Socket) => void,
  backlog: number,
): Promise<TransportListener> {
  const server = createServer({ allowHalfOpen: true }, onConnection);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen({ path, backlog }, resolve);
  await promise;
  return {
    close: async () => {
      if (server.listening) server.close(); // its own callback would wait for the connections that stay
    },
  };
}

async function answers(path: string): Promise<boolean> {
  try {
    (await connectTo(path, {})).destroy();
    return true;
  } catch {
    return false;
  }
}

function nobodyAt(path: string): TransportError {
  return new TransportError('ECONNRESET', `connect ECONNRESET ${path}`);
}
