// An HTTP server whose connections come from a Transport: Node counts, times and closes only those it accepted itself.

import type { Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { Places } from '../../../common/formats/places.ts';
import type { Transport } from '../../native/transport.ts';
import { type LostPlace, takePlace } from '../places.ts';
import type { ClosableServer } from './listen.ts';

export interface TransportServerOptions {
  readonly transport: Transport;
  readonly port: number;
  readonly maxConnections: number;
  readonly prepare?: (socket: Socket, hand: (socket: Socket) => void) => void;
  readonly onLostPlace?: (why: LostPlace) => void;
}

export interface TransportServer extends ClosableServer {
  connections(): number;
}

/** A full vsock queue resets the next connection at once (specification/enclave.md#transport). */
const BACKLOG = 4096;

export async function serveTransport(
  server: Server | TlsServer,
  { transport, port, maxConnections, prepare, onLostPlace = () => undefined }: TransportServerOptions,
): Promise<TransportServer> {
  const open = new Set<Socket>();
  const places = new Places<Socket>(maxConnections);
  const preparing = new Set<Socket>();
  const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
  let closing = false;

  const hand = (socket: Socket): void => {
    preparing.delete(socket);
    if (!socket.destroyed) server.emit('connection', socket);
  };
  const onConnection = (socket: Socket): void => {
    socket.on('error', () => undefined); // it is closed after that, which is what counts
    if (closing) return void socket.destroy();
    if (!takePlace(places, socket, undefined, onLostPlace)) return;
    open.add(socket);
    preparing.add(socket);
    socket.once('close', () => {
      open.delete(socket);
      preparing.delete(socket);
      if (closing && open.size === 0) drain();
    });
    if (prepare === undefined) hand(socket);
    else prepare(socket, hand);
  };

  const listener = await transport.listen(port, onConnection, { backlog: BACKLOG });
  // Node begins to time the headers and requests of a server's connections when it listens; this one never does.
  server.emit('listening');

  return {
    connections: () => open.size,
    close(onClosed) {
      if (!closing) {
        closing = true;
        server.close(() => undefined); // ends the timing, and what is idle
        for (const socket of preparing) socket.destroy();
        if (open.size === 0) drain();
      }
      void Promise.all([listener.close(), drained]).then(onClosed);
    },
    closeIdleConnections: () => server.closeIdleConnections(),
    closeAllConnections() {
      for (const socket of open) socket.destroy();
    },
  };
}
