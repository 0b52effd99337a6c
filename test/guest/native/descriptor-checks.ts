// A process without descriptors left refuses, stays, and goes on when there are some again.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Addon } from '../../../signer/native/load.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import type { StreamVariant } from '../../../signer/native/vsock-stream.ts';
import type { Checks } from '../checks.ts';
import { ECHO_PORT, LOOPBACK_CID, SHORT_LIVED_PORT } from './settings.ts';
import { closed, echo, exchange } from './streams.ts';

const DESCRIPTORS = 64;
const CONNECTIONS = 200;

export async function checkDescriptors(addon: Addon, check: Checks['check'], variant: StreamVariant): Promise<void> {
  const transport = vsockTransport(addon, { peerCid: LOOPBACK_CID, streams: variant });

  await check(
    `${variant}: connects end with EMFILE when descriptors run out, and work when there are some again`,
    async () => {
      const listener = await transport.listen(ECHO_PORT, echo);
      const client = start('connect', variant);
      const [exitCode] = await once(client, 'exit');
      assert.equal(exitCode, 0);
      await listener.close();
    },
  );

  await check(`${variant}: a listener without descriptors cuts connections off, and takes the later ones`, async () => {
    const server = start('listen', variant);
    assert(server.stdout !== null);
    await once(server.stdout, 'data');
    const connected = await Promise.all(Array.from({ length: CONNECTIONS }, () => transport.connect(SHORT_LIVED_PORT)));
    const answers = await Promise.all(connected.map(isAnswered));
    assert(answers.includes(true) && answers.includes(false));
    await Promise.all(connected.map((socket) => closed(socket.destroy())));
    assert.equal(await exchange(transport, SHORT_LIVED_PORT, 'again'), 'again');
    server.kill();
    await once(server, 'exit');
    server.stdout.destroy();
  });
}

function start(role: 'connect' | 'listen', variant: StreamVariant): ChildProcess {
  const command = `ulimit -n ${DESCRIPTORS}; exec "$0" "$1" ${role} ${variant}`;
  const program = `${import.meta.dirname}/few-descriptors.js`;
  return spawn('sh', ['-c', command, process.execPath, program], { stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Whether a byte comes back; false when the connection is cut off instead. */
function isAnswered(socket: Socket): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  socket.on('error', () => undefined);
  socket.once('data', () => resolve(true));
  socket.once('end', () => resolve(false));
  socket.once('close', () => resolve(false));
  socket.write('.');
  return promise;
}
