// What ingress and egress share: the places of one port, the relays that run in them, and how they end.

import type { Socket } from 'node:net';
import type { ProxyMetrics, ServiceName } from '../metrics.ts';
import type { Limits } from '../world.ts';
import type { ConnectFailure } from './connect-failure.ts';
import { createGate, type Gate } from './gate.ts';
import { type Relay, relay } from './relay.ts';

export interface ForwardingListener {
  readonly port: number;
  close(): Promise<void>;
  /** End each connection once it is quiet for so long, also those that are still being connected. */
  endWhenQuiet(quietMs: number): void;
  empty(): Promise<void>;
  cutAll(): void;
}

/** A read of a TCP socket; two of them and the kernel's buffers are what a slow connection holds. */
export const TCP_BUFFER_BYTES = 32 * 1024;

interface Forwarding {
  readonly gate: Gate;
  countArrival(outcome: 'forwarded' | 'connect_failed' | 'gone'): void;
  countFailure(reason: ConnectFailure): void;
  /** Carry until both have ended. @param establishedAfterTurns of speaking; for ever displaceable without it */
  carry(tcp: Socket, enclave: Socket, establishedAfterTurns?: number): Promise<void>;
  endWhenQuiet(quietMs: number): void;
}

export function createForwarding(
  service: ServiceName,
  port: number,
  limits: Limits,
  metrics: ProxyMetrics,
): Forwarding {
  const relays = new Set<Relay>();
  const toEnclave = metrics.at('bytes', { service, port, direction: 'to_enclave' });
  const fromEnclave = metrics.at('bytes', { service, port, direction: 'from_enclave' });
  let quietMs: number | undefined;
  const gate = createGate(service, port, limits.maxConnections, metrics);
  return {
    gate,
    countArrival: (outcome) => metrics.at('connections', { service, port, outcome }).add(1),
    countFailure: (reason) => metrics.at('connectFailures', { service, port, reason }).add(1),
    async carry(tcp, enclave, turns) {
      const { idleTimeoutMs, lingerMs } = limits;
      const linger = lingerMs === undefined ? {} : { lingerMs };
      const established = turns === undefined ? {} : { established: { turns, call: () => gate.establish(tcp) } };
      const running = relay(tcp, enclave, { idleTimeoutMs, ...linger, toEnclave, fromEnclave, ...established });
      relays.add(running);
      if (quietMs !== undefined) running.endWhenQuiet(quietMs);
      const reason = await running.ended;
      relays.delete(running);
      metrics.at('ends', { service, port, reason }).add(1);
    },
    endWhenQuiet(milliseconds) {
      quietMs = milliseconds;
      for (const running of relays) running.endWhenQuiet(milliseconds);
    },
  };
}
