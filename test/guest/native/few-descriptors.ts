// A process that may have few descriptors and runs out of them: `connect pipe|dup3` makes connections until there is
// none left, `listen pipe|dup3` accepts more than it can have.

import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { loadAddon } from '../../../signer/native/load.ts';
import { TransportError } from '../../../signer/native/transport.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import type { StreamVariant } from '../../../signer/native/vsock-stream.ts';
import { openSockets } from '../checks.ts';
import { ECHO_PORT, LOOPBACK_CID, SHORT_LIVED_PORT } from './settings.ts';
import { closed, echo, exchange } from './streams.ts';

const [role, streams] = process.argv.slice(2) as ['connect' | 'listen', StreamVariant];
const addon = loadAddon();
assert(addon !== undefined, 'the guest has the addon');
const transport = vsockTransport(addon, { peerCid: LOOPBACK_CID, streams });

if (role === 'listen') {
  await transport.listen(SHORT_LIVED_PORT, echo);
  process.stdout.write('listening\n');
} else {
  const before = openSockets();
  await Promise.all((await connectAll()).map((socket) => closed(socket.destroy())));
  assert.equal(openSockets(), before);
  assert.equal(await exchange(transport, ECHO_PORT, 'again'), 'again');
  process.exit(0);
}

async function connectAll(): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (;;) {
    try {
      sockets.push(await transport.connect(ECHO_PORT));
    } catch (error) {
      assert(error instanceof TransportError && error.code === 'EMFILE', String(error));
      return sockets;
    }
  }
}
