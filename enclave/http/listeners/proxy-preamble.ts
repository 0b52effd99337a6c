// Takes exactly the PROXY header off the beginning of a stream: all bytes after it belong to the client. It refuses a
// peer that sends something else, too much, too slowly or nothing. The caller then closes the connection.

import type { Socket } from 'node:net';
import {
  PROXY_PREAMBLE_BYTES,
  type ProxyHeader,
  type ProxyHeaderRefusal,
  parseProxyHeader,
  proxyHeaderBytes,
} from '../../../formats/proxy-header.ts';

/** @param timeoutMs for the whole header */
export async function readProxyHeader(socket: Socket, timeoutMs: number): Promise<ProxyHeader | ProxyHeaderRefusal> {
  const { promise: late, resolve: expire } = Promise.withResolvers<undefined>();
  const timer = setTimeout(expire, timeoutMs, undefined);
  try {
    const preamble = await readExactly(socket, PROXY_PREAMBLE_BYTES, late);
    if (!Buffer.isBuffer(preamble)) return preamble;
    const total = proxyHeaderBytes(preamble);
    if (typeof total !== 'number') return total;
    const rest = total - PROXY_PREAMBLE_BYTES;
    const body = rest === 0 ? Buffer.alloc(0) : await readExactly(socket, rest, late);
    return Buffer.isBuffer(body) ? parseProxyHeader(Buffer.concat([preamble, body])) : body;
  } finally {
    clearTimeout(timer);
  }
}

async function readExactly(
  socket: Socket,
  bytes: number,
  late: Promise<undefined>,
): Promise<Buffer | ProxyHeaderRefusal> {
  const { promise: result, resolve } = Promise.withResolvers<Buffer | ProxyHeaderRefusal>();
  const look = (): void => {
    const chunk = socket.read(bytes) as Buffer | null;
    if (chunk !== null) resolve(chunk.length === bytes ? chunk : refused('the stream ended in its PROXY header'));
  };
  const onEnd = (): void => resolve(refused('the stream ended before its PROXY header'));
  socket.on('readable', look);
  socket.once('end', onEnd);
  socket.once('close', onEnd);
  look();
  try {
    return (await Promise.race([result, late])) ?? refused('no PROXY header in time');
  } finally {
    socket.off('readable', look);
    socket.off('end', onEnd);
    socket.off('close', onEnd);
  }
}

function refused(problem: string): ProxyHeaderRefusal {
  return { kind: 'refused', problem };
}
