// A TCP proxy in front of any backing service on this machine, that fails as the network and the service's process do:
// it refuses, stands still, is slow, answers garbage, or cuts each connection in the middle of an answer.

import { connect, createServer, type Socket } from 'node:net';

export type TcpFault = 'refuses' | 'stands still' | 'is slow' | 'answers garbage' | 'cuts its answers';

export interface TcpFaults {
  readonly port: number;
  /** Connections that arrived so far. */
  readonly connections: number;
  /** Of connections that are open, too; undefined lets everything through, on new connections after a fault. */
  set(fault: TcpFault | undefined): void;
  close(): Promise<void>;
}

const SLOW_MS = 150;
/** No protocol begins so, and no length in it is small. */
const GARBAGE = Buffer.from(Array.from({ length: 512 }, (_, index) => (index * 151 + 0x8f) & 0xff));

export async function startTcpFaults(servicePort: number): Promise<TcpFaults> {
  const sockets = new Set<Socket>();
  const state: { fault: TcpFault | undefined; connections: number } = { fault: undefined, connections: 0 };
  const answer = (client: Socket, bytes: Buffer): void => {
    switch (state.fault) {
      case undefined:
        client.write(bytes);
        return;
      case 'is slow':
        setTimeout(() => client.write(bytes), SLOW_MS);
        return;
      case 'answers garbage':
        client.write(GARBAGE);
        return;
      case 'cuts its answers':
        client.end(bytes.subarray(0, Math.ceil(bytes.length / 2)));
        return;
      case 'stands still':
      case 'refuses':
        return;
    }
  };
  const server = createServer((client) => {
    state.connections += 1;
    if (state.fault === 'refuses') {
      client.on('error', () => undefined).resetAndDestroy();
      return;
    }
    const upstream = connect(servicePort, '127.0.0.1');
    joinEnds(client, upstream, sockets);
    client.on('data', (bytes) => {
      if (state.fault !== 'stands still') upstream.write(bytes);
    });
    upstream.on('data', (bytes: Buffer) => answer(client, bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('it listens on a port');
  return {
    port: address.port,
    get connections() {
      return state.connections;
    },
    set(fault) {
      const was = state.fault;
      state.fault = fault;
      // What stood in them is lost: nothing that was held back arrives later as if nothing had been.
      if (fault === 'refuses' || (fault === undefined && was !== 'is slow')) {
        for (const socket of sockets) socket.resetAndDestroy();
      }
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * What one side ends ends the other, and errors of either stay here.
 * @param sockets both, while they are open
 */
export function joinEnds(client: Socket, upstream: Socket, sockets: Set<Socket>): void {
  for (const [socket, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      other.destroy();
    });
  }
}
