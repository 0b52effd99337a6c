// An NSM device of the test process for a process of its own: one connection to a Unix socket for each exchange,
// request and answer each to the end of the stream. What the enclave's program is given in place of /dev/nsm, so that a
// test sees and sets its registers.

import { connect, createServer } from 'node:net';
import type { NsmDevice } from '../../signer/tee/nsm.ts';
import { hear } from './streams.ts';

/** @param device asked anew for every exchange: another one is an enclave that was started again */
export async function serveNsm(path: string, device: () => NsmDevice): Promise<{ close(): Promise<void> }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined); // the enclave may be killed at any time
    void hear(socket)
      .then(({ bytes }) => device()(bytes))
      .then((answer) => socket.end(answer))
      .catch(() => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}

export function nsmOverSocket(path: string): NsmDevice {
  return async (request) => {
    const socket = connect({ path, allowHalfOpen: true });
    socket.end(request);
    return (await hear(socket)).bytes;
  };
}
