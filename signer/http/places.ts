// When a listener has no place left, the oldest connection without an admitted request goes (common/formats/places.ts).

import type { ServerOptions } from 'node:http';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Places } from '../../common/formats/places.ts';
import { streamOf } from './context.ts';

export interface ConnectionLimits {
  readonly handshakeTimeoutMs: number;
  readonly headersTimeoutMs: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = { handshakeTimeoutMs: 10_000, headersTimeoutMs: 15_000 };
const CHECKS = 4;

export function headerTimes(
  headersTimeout: number = CONNECTION_LIMITS.headersTimeoutMs,
): Required<Pick<ServerOptions, 'headersTimeout' | 'connectionsCheckingInterval'>> {
  return { headersTimeout, connectionsCheckingInterval: Math.ceil(headersTimeout / CHECKS) };
}

export type LostPlace = 'displaced' | 'limit';

const placesOf = new WeakMap<Socket, Places<Socket>>();

export function takePlace(
  places: Places<Socket>,
  socket: Socket,
  address: string | undefined,
  onLost: (why: LostPlace) => void,
): boolean {
  const displaced = places.enter(socket, address);
  if (displaced !== undefined) {
    onLost(displaced === socket ? 'limit' : 'displaced');
    displaced.destroy();
  }
  if (displaced === socket) return false;
  placesOf.set(socket, places);
  socket.once('close', () => places.leave(socket));
  return true;
}

/** The address of its client has become known. @param socket that took the place */
export function namePlace(socket: Socket, address: string | undefined): void {
  placesOf.get(socket)?.name(socket, address);
}

/** From now on it is not displaced. @param socket the one that requests are read from */
export function settlePlace(socket: Socket): void {
  const stream = streamOf(socket as TLSSocket) ?? socket;
  const places = placesOf.get(stream);
  if (places === undefined) return;
  places.settle(stream);
  placesOf.delete(stream);
}
