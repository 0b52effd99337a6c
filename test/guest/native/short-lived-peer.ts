// A peer that is there to be killed: greets whoever connects and holds on to the connection.

import { loadAddon } from '../../../signer/native/load.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import { LOOPBACK_CID, SHORT_LIVED_PORT } from './settings.ts';

const addon = loadAddon();
if (addon === undefined) throw new Error('the guest has the addon');
await vsockTransport(addon, { peerCid: LOOPBACK_CID }).listen(SHORT_LIVED_PORT, (socket) => {
  socket.on('error', () => undefined).write('hello');
});
process.stdout.write('listening\n');
