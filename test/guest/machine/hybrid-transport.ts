// The parent's side of vsock by the Unix sockets of vhost-device-vsock (Firecracker's convention): the guest's
// connections to port N of CID 2 come to the socket PATH_N; a connection to the guest is one to PATH that begins with
// `CONNECT N` and is answered with a line `OK …`.

import { once } from 'node:events';
import { unlinkSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { type Transport, TransportError } from '../../../signer/native/transport.ts';

const DEFAULT_CONNECT_TIMEOUT_MS = 3000;
const MAX_ANSWER_BYTES = 32;

export function hybridTransport(path: string): Transport {
  return {
    connect: (port, options = {}) => connectTo(path, port, options),
    async listen(port, onConnection, { backlog } = {}) {
      const server = createServer({ allowHalfOpen: true }, onConnection);
      const at = `${path}_${port}`;
      server.listen({ path: at, ...(backlog === undefined ? {} : { backlog }) });
      await once(server, 'listening');
      return {
        close: async () => {
          if (!server.listening) return;
          server.close(); // its own callback would wait for the connections that stay
          unlinkQuietly(at);
        },
      };
    },
  };
}

async function connectTo(
  path: string,
  port: number,
  { timeoutMs = DEFAULT_CONNECT_TIMEOUT_MS, signal }: { readonly timeoutMs?: number; readonly signal?: AbortSignal },
): Promise<Socket> {
  signal?.throwIfAborted();
  const socket = connect({ path, allowHalfOpen: true });
  const limit = AbortSignal.timeout(timeoutMs);
  const stop = signal === undefined ? limit : AbortSignal.any([limit, signal]);
  try {
    await once(socket, 'connect', { signal: stop });
    socket.write(`CONNECT ${port}\n`);
    const answer = await answerOf(socket, stop);
    if (!/^OK \d+$/.test(answer))
      throw new TransportError('ECONNRESET', `connect to port ${port}: ${answer || 'cut off'}`);
    return socket;
  } catch (error) {
    socket.destroy();
    if (limit.aborted) throw new TransportError('ETIMEDOUT', `connect to port ${port}: no answer in ${timeoutMs} ms`);
    throw (error as NodeJS.ErrnoException).code === 'ECONNREFUSED'
      ? new TransportError('ECONNREFUSED', `connect to port ${port}: nobody listens at ${path}`)
      : error;
  }
}

async function answerOf(socket: Socket, signal: AbortSignal): Promise<string> {
  let read = Buffer.alloc(0);
  while (!read.includes(0x0a) && read.length < MAX_ANSWER_BYTES) {
    const part = socket.read() as Buffer | null;
    if (part !== null) read = Buffer.concat([read, part]);
    else if (socket.readableEnded) return '';
    else await Promise.race(['readable', 'end'].map((event) => once(socket, event, { signal })));
  }
  const end = read.indexOf(0x0a);
  if (end === -1) return read.toString('latin1');
  if (end + 1 < read.length) socket.unshift(read.subarray(end + 1));
  return read.subarray(0, end).toString('latin1');
}

function unlinkQuietly(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // it is gone
  }
}
