// The parent proxy connects to its enclave, and tries again while that boots and has no listener: with full jitter, so
// that the clients of a restarted enclave do not come in step. Alone: ingress.ts is about clients, this about the
// enclave.

import type { Socket } from 'node:net';
import type { PausingClock } from '../clock.ts';
import type { Limits, ProxyWorld } from '../world.ts';

/** Each says that the enclave does not listen (specification/enclave.md#transport). */
const NOBODY_THERE: ReadonlySet<unknown> = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ENODEV',
  'ETIMEDOUT',
  'EHOSTUNREACH',
]);
const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1000;

/** @param onFailure each attempt that failed @throws the last attempt's error, or AbortError */
export async function reachEnclave(
  { transport, clock }: Pick<ProxyWorld, 'transport'> & { readonly clock: PausingClock },
  port: number,
  { connectTimeoutMs, connectRetryMs }: Pick<Limits, 'connectTimeoutMs' | 'connectRetryMs'>,
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): Promise<Socket> {
  const until = clock.monotonic() + connectRetryMs;
  for (let attempt = 0; ; attempt++) {
    try {
      const socket = await transport.connect(port, { timeoutMs: connectTimeoutMs, signal });
      socket.on('error', () => undefined);
      return socket;
    } catch (error) {
      if (signal.aborted) throw error;
      onFailure(error);
      const pauseMs = clock.random() * Math.min(FIRST_PAUSE_MS * 2 ** attempt, MAX_PAUSE_MS);
      if (!isNobodyThere(error) || clock.monotonic() + pauseMs > until) throw error;
      await clock.pause(pauseMs, signal);
    }
  }
}

function isNobodyThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && NOBODY_THERE.has(error.code);
}
