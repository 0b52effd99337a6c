// Port 7001: the configuration file, as it was when the proxy started: a 4-byte big-endian length, the bytes, the end.
// The enclave measures them into PCR16, so a parent that sends others changes the measurement. What the enclave sends
// here is not read.

import type { Socket } from 'node:net';
import { CONFIGURATION_LENGTH_BYTES, CONFIGURATION_PORT } from '../../enclave/api/parent-ports.ts';
import { createGate } from '../forwarding/gate.ts';
import { CONFIGURATION_TIMEOUT_MS, MAX_CONFIGURATION_CONNECTIONS } from '../limits.ts';
import type { ProxyWorld } from '../world.ts';
import type { Service } from './service.ts';

const service = 'configuration';

/** @throws when the port is taken */
export async function listenConfiguration(bytes: Buffer, { transport, metrics, logger }: ProxyWorld): Promise<Service> {
  const log = logger.module('configuration');
  const gate = createGate(service, CONFIGURATION_PORT, MAX_CONFIGURATION_CONNECTIONS, metrics);
  const served = metrics.at('connections', { service, port: CONFIGURATION_PORT, outcome: 'served' });
  const length = Buffer.alloc(CONFIGURATION_LENGTH_BYTES);
  length.writeUInt32BE(bytes.length);
  const frame = Buffer.concat([length, bytes]);

  const serve = (socket: Socket): void => {
    const timer = setTimeout(() => socket.destroy(), CONFIGURATION_TIMEOUT_MS);
    socket.once('close', () => clearTimeout(timer));
    socket.once('finish', () => {
      served.add(1);
      log.info({ bytes: bytes.length }, 'the enclave took its configuration');
    });
    socket.once('data', () => socket.destroy()); // it has nothing to say here
    socket.end(frame);
  };
  const listener = await transport.listen(CONFIGURATION_PORT, (socket) => {
    if (gate.admit(socket)) serve(socket);
  });
  return {
    async close() {
      await listener.close();
      gate.cutAll();
      await gate.empty();
    },
  };
}
