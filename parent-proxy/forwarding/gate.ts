// The gate of one port: so many connections at a time, each of them known until it is closed. Whatever holds a place
// gives it back when its socket closes, and in no other way, so that no path through the proxy can keep one.

import type { Socket } from 'node:net';
import type { Metrics, ServiceName } from '../metrics.ts';

export interface Gate {
  /** @returns false when every place is taken: the socket has been cut off */
  admit(socket: Socket): boolean;
  /** Connections that hold a place, oldest first. */
  readonly open: ReadonlySet<Socket>;
  /** Cut off whatever is open. */
  cutAll(): void;
  /** Resolves when nothing is open. */
  empty(): Promise<void>;
}

export function createGate(service: ServiceName, port: number, maxConnections: number, metrics: Metrics): Gate {
  const open = new Set<Socket>();
  const refused = metrics.at('connections', { service, port, outcome: 'limit' });
  const places = metrics.at('openConnections', { service, port });
  metrics.at('maxConnections', { service, port }).set(maxConnections);
  let waiting: (() => void)[] = [];

  const leave = (socket: Socket): void => {
    open.delete(socket);
    places.set(open.size);
    if (open.size > 0) return;
    const resolved = waiting;
    waiting = [];
    for (const resolve of resolved) resolve();
  };
  return {
    open,
    admit(socket) {
      socket.on('error', ignore); // before anything else can happen: whoever uses the socket sees its close
      if (open.size >= maxConnections) {
        refused.add(1);
        socket.destroy();
        return false;
      }
      open.add(socket);
      places.set(open.size);
      socket.once('close', () => leave(socket));
      return true;
    },
    cutAll() {
      for (const socket of open) socket.destroy();
    },
    async empty() {
      if (open.size > 0) await new Promise<void>((resolve) => void waiting.push(resolve));
    },
  };
}

function ignore(): void {}
