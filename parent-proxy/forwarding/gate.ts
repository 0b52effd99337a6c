// The gate of one port: so many connections at a time. Whatever holds a place gives it back when its socket closes, or
// loses it to a newcomer (common/formats/places.ts).

import type { Socket } from 'node:net';
import { Places } from '../../common/formats/places.ts';
import type { ProxyMetrics, ServiceName } from '../metrics.ts';

export interface Gate {
  /** @param isEstablished false: it may be displaced until it is @returns false: the socket has been cut off */
  admit(socket: Socket, isEstablished?: boolean): boolean;
  establish(socket: Socket): void;
  readonly open: ReadonlySet<Socket>;
  cutAll(): void;
  empty(): Promise<void>;
}

export function createGate(service: ServiceName, port: number, maxConnections: number, metrics: ProxyMetrics): Gate {
  const open = new Set<Socket>();
  const places = new Places<Socket>(maxConnections);
  const refused = metrics.at('connections', { service, port, outcome: 'limit' });
  const displacements = metrics.at('displaced', { service, port });
  const shown = metrics.at('openConnections', { service, port });
  metrics.at('maxConnections', { service, port }).set(maxConnections);
  let waiting: (() => void)[] = [];

  const leave = (socket: Socket): void => {
    open.delete(socket);
    places.leave(socket);
    shown.set(open.size);
    if (open.size > 0) return;
    const resolved = waiting;
    waiting = [];
    for (const resolve of resolved) resolve();
  };
  return {
    open,
    admit(socket, isEstablished = true) {
      socket.on('error', ignore); // before anything else can happen: the code that uses the socket sees its close
      const displaced = places.enter(socket, socket.remoteAddress);
      displaced?.destroy();
      if (displaced === socket) {
        refused.add(1);
        return false;
      }
      if (displaced !== undefined) displacements.add(1);
      if (isEstablished) places.settle(socket);
      open.add(socket);
      shown.set(open.size);
      socket.once('close', () => leave(socket));
      return true;
    },
    establish: (socket) => places.settle(socket),
    cutAll() {
      for (const socket of open) socket.destroy();
    },
    async empty() {
      if (open.size > 0) await new Promise<void>((resolve) => void waiting.push(resolve));
    },
  };
}

function ignore(): void {}
