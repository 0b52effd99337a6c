// How long a connection may take to become a request. Every listener has both limits: whoever sends nothing, or a byte
// now and then, holds one of its places for no longer. Node has defaults of 60 and 120 s, and none at all where
// requestTimeout is 0.

import type { ServerOptions } from 'node:http';

export interface ConnectionLimits {
  /** From the connection to the end of the TLS handshake. */
  readonly handshakeTimeoutMs: number;
  /** From the connection, and later from the first byte of a request, to the end of its headers. */
  readonly headersTimeoutMs: number;
}

export const CONNECTION_LIMITS: ConnectionLimits = { handshakeTimeoutMs: 10_000, headersTimeoutMs: 15_000 };
/** Node looks for connections that are late so often in each of their times. */
const CHECKS = 4;

export function headerTimes(
  headersTimeout: number,
): Required<Pick<ServerOptions, 'headersTimeout' | 'connectionsCheckingInterval'>> {
  return { headersTimeout, connectionsCheckingInterval: Math.ceil(headersTimeout / CHECKS) };
}
