// Port 7000: the enclave's log, line by line, to the proxy's output. Never faster than the configured rate, and never faster than the
// output takes it: then reading stops, and the enclave, whose log never holds up a signature, keeps or drops and counts.

import type { Socket } from 'node:net';
import { LOG_PORT } from '../enclave/api/parent-ports.ts';
import type { Clock } from './clock.ts';
import { createLineReader } from './enclave-lines.ts';
import { createGate } from './gate.ts';
import { MAX_LOG_CONNECTIONS } from './limits.ts';
import type { Service } from './service.ts';
import type { World } from './world.ts';

const service = 'logs';

/** @throws when the port is taken */
export async function listenLogs(maxBytesPerSecond: number, world: World): Promise<Service> {
  const { transport, metrics, output, clock } = world;
  // The newest comes in: an enclave that was restarted must not wait for what its predecessor left behind.
  const gate = createGate(service, LOG_PORT, MAX_LOG_CONNECTIONS + 1, metrics);
  const served = metrics.at('connections', { service, port: LOG_PORT, outcome: 'served' });
  const received = metrics.at('bytes', { service, port: LOG_PORT, direction: 'from_enclave' });
  const pauses = metrics.at('logPauses', {});
  const budget = createBudget(maxBytesPerSecond, clock);
  const ending = new AbortController();

  const serve = (socket: Socket): void => {
    served.add(1);
    const reader = createLineReader((form) => metrics.at('logLines', { form }).add(1));
    const write = (lines: string, readBytes: number): void => {
      const isTaken = lines === '' || output.write(lines);
      const waitMs = budget.spend(Math.max(readBytes, lines.length));
      if (isTaken && waitMs === 0) return;
      pauses.add(1);
      socket.pause();
      void Promise.all([output.drained(), clock.pause(waitMs, ending.signal)]).then(
        () => socket.resume(),
        () => socket.destroy(), // the proxy ends
      );
    };
    socket.on('data', (bytes: Buffer) => {
      received.add(bytes.length);
      write(reader.push(bytes), bytes.length);
    });
    socket.once('close', () => write(reader.rest(), 0));
    socket.once('end', () => socket.end());
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

/** A token bucket of one second's bytes; what is overspent is waited for. */
function createBudget(bytesPerSecond: number, clock: Clock): { spend(bytes: number): number } {
  let left = bytesPerSecond;
  let at = clock.monotonic();
  return {
    spend(bytes) {
      const now = clock.monotonic();
      left = Math.min(bytesPerSecond, left + ((now - at) / 1000) * bytesPerSecond) - bytes;
      at = now;
      return left >= 0 ? 0 : Math.ceil((-left / bytesPerSecond) * 1000);
    },
  };
}
