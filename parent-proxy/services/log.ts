// Port 7000: the enclave's log, line by line. Never faster than the configured rate or the output: then reading stops,
// and the enclave keeps or drops and counts.

import type { Socket } from 'node:net';
import { LOG_PORT } from '../../signer/api/parent-ports.ts';
import type { PausingClock } from '../clock.ts';
import { createGate } from '../forwarding/gate.ts';
import { MAX_LOG_CONNECTIONS } from '../limits.ts';
import type { ProxyWorld } from '../world.ts';
import { createLineReader } from './log-lines.ts';
import type { Service } from './service.ts';

const service = 'logs';

export async function listenLogs(maxBytesPerSecond: number, world: ProxyWorld): Promise<Service> {
  const { transport, metrics, output, clock } = world;
  // The newest comes in: an enclave that was restarted must not wait for what its predecessor left behind.
  const gate = createGate(service, LOG_PORT, MAX_LOG_CONNECTIONS + 1, metrics);
  const served = metrics.at('connections', { service, port: LOG_PORT, outcome: 'served' });
  const received = metrics.at('bytes', { service, port: LOG_PORT, direction: 'from_enclave' });
  const pauses = metrics.at('logPauses', {});
  const budget = createBudget(maxBytesPerSecond, clock);
  const ending = new AbortController();
  /** One wait for all, so that connections that come and go leave none behind. */
  const held = new Set<Socket>();
  let waiting = false;

  const hold = (socket: Socket): void => {
    pauses.add(1);
    held.add(socket);
    socket.pause();
    if (!waiting) void releaseAll();
  };
  const releaseAll = async (): Promise<void> => {
    waiting = true;
    try {
      await Promise.all([output.drained(), clock.pause(budget.owedMs(), ending.signal)]);
    } catch {
      return; // the proxy ends
    }
    waiting = false;
    for (const socket of held) socket.resume();
    held.clear();
  };

  const serve = (socket: Socket): void => {
    served.add(1);
    const reader = createLineReader((form) => metrics.at('logLines', { form }).add(1));
    const write = (lines: string, readBytes: number): boolean => {
      const isTaken = lines === '' || output.write(lines);
      budget.spend(Math.max(readBytes, lines.length));
      return isTaken && budget.owedMs() === 0;
    };
    socket.on('data', (bytes: Buffer) => {
      received.add(bytes.length);
      if (!write(reader.push(bytes), bytes.length)) hold(socket);
    });
    socket.once('close', () => {
      held.delete(socket);
      write(reader.rest(), 0);
    });
    socket.once('end', () => socket.end());
    // Or each new connection would have a first read beyond the rate.
    if (waiting) hold(socket);
  };
  const listener = await transport.listen(LOG_PORT, (socket) => {
    if (!gate.admit(socket)) return;
    const [oldest] = gate.open;
    if (gate.open.size > MAX_LOG_CONNECTIONS) oldest?.destroy();
    serve(socket);
  });
  return {
    async close() {
      await listener.close();
      ending.abort();
      gate.cutAll();
      await gate.empty();
    },
  };
}

interface Budget {
  spend(bytes: number): void;
  /** How long until what is overspent has been waited for. */
  owedMs(): number;
}

/** A token bucket of one second's bytes. */
function createBudget(bytesPerSecond: number, clock: PausingClock): Budget {
  let left = bytesPerSecond;
  let at = clock.monotonic();
  const refill = (): void => {
    const now = clock.monotonic();
    left = Math.min(bytesPerSecond, left + ((now - at) / 1000) * bytesPerSecond);
    at = now;
  };
  return {
    spend(bytes) {
      refill();
      left -= bytes;
    },
    owedMs() {
      refill();
      return left >= 0 ? 0 : Math.ceil((-left / bytesPerSecond) * 1000);
    },
  };
}
