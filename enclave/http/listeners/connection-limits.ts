// The time that a connection may take until it becomes a request. Every listener has both limits, so a client that
// sends nothing, or a byte now and then, cannot hold a place for longer. Node's defaults are 60 and 120 s, and where
// requestTimeout is 0 it has none.

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
