// Who is at the other end, and who is not: connects that fail, peers that are not wanted, peers that vanish. And no
// socket is left open, which `check` sees to.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { ADDON_PATH, type Addon } from '../../../signer/native/load.ts';
import { type Transport, TransportError } from '../../../signer/native/transport.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import type { StreamVariant } from '../../../signer/native/vsock-stream.ts';
import type { Checks } from '../checks.ts';
import { LOOPBACK_CID, SHORT_LIVED_PORT } from './settings.ts';
import { closed, echo, exchange } from './streams.ts';

type Check = Checks['check'];

const NOBODY = new Set(['ECONNRESET', 'ENODEV', 'ECONNREFUSED', 'ETIMEDOUT', 'EHOSTUNREACH']);
const PORT = 6000;
const ABSENT_PORT = 5999;

export async function checkEnds(addon: Addon, check: Check, variant: StreamVariant): Promise<void> {
  const to = (peerCid: number): Transport => vsockTransport(addon, { peerCid, streams: variant });
  const loopback = to(LOOPBACK_CID);
  await checkOneStream(addon, check, variant);
  await checkConnectFailures(to, check, variant);

  await check(`${variant}: a port that is taken cannot be listened on again, until it is closed`, async () => {
    const first = await loopback.listen(PORT, echo);
    await assert.rejects(loopback.listen(PORT, echo), (error) => isTransportError(error, new Set(['EADDRINUSE'])));
    await first.close();
    await (await loopback.listen(PORT, echo)).close();
  });

  await check(`${variant}: a peer of another CID is cut off before anybody sees it`, async () => {
    const seen: Socket[] = [];
    const listener = await to(3).listen(PORT, (socket) => void seen.push(socket));
    const intruder = await loopback.connect(PORT);
    intruder.write('let me in');
    await closed(intruder);
    assert.equal(seen.length, 0);
    await listener.close();
  });

  await check(`${variant}: a peer whose process is killed ends the stream`, async () => {
    const peer = spawn(process.execPath, [`${import.meta.dirname}/short-lived-peer.js`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(peer.stdout, 'data');
    const socket = await loopback.connect(SHORT_LIVED_PORT);
    await once(socket, 'data');
    peer.kill('SIGKILL');
    socket.end();
    await closed(socket);
    if (peer.exitCode === null && peer.signalCode === null) await once(peer, 'exit');
    peer.stdout.destroy();
  });
}

export async function checkOneStream(addon: Addon, check: Check, variant: StreamVariant): Promise<void> {
  await check(`${variant}: what is sent comes back`, async () => {
    const transport = vsockTransport(addon, { peerCid: LOOPBACK_CID, streams: variant });
    const listener = await transport.listen(PORT, echo);
    assert.equal(await exchange(transport, PORT, 'hello'), 'hello');
    await listener.close();
  });
}

async function checkConnectFailures(
  to: (cid: number) => Transport,
  check: Check,
  variant: StreamVariant,
): Promise<void> {
  const loopback = to(LOOPBACK_CID);

  await check(`${variant}: nobody listening, and no such machine, are errors with the system's code`, async () => {
    await assert.rejects(loopback.connect(ABSENT_PORT), (error) => isTransportError(error, new Set(['ECONNRESET'])));
    for (const cid of [3, 77]) {
      await assert.rejects(to(cid).connect(PORT), (error) => isTransportError(error, NOBODY));
    }
  });

  await check(`${variant}: 300 connects that fail leave nothing behind`, async () => {
    for (let round = 0; round < 3; round++) {
      const attempts = Array.from({ length: 100 }, () => loopback.connect(ABSENT_PORT));
      const outcomes = await Promise.allSettled(attempts);
      assert(outcomes.every(({ status }) => status === 'rejected'));
    }
  });

  await check(`${variant}: a connect that is aborted, or takes longer than its limit, ends at once`, async () => {
    const listener = await loopback.listen(
      PORT,
      (socket) =>
        void socket
          .on('error', () => undefined)
          .resume()
          .end(),
    );
    const controller = new AbortController();
    const aborted = loopback.connect(PORT, { signal: controller.signal });
    controller.abort(new Error('not any more'));
    await assert.rejects(aborted, /not any more/);
    const late = loopback.connect(PORT, { timeoutMs: 1 });
    block(20); // the timer is due before the event loop looks at the socket
    await assert.rejects(late, (error) => isTransportError(error, new Set(['ETIMEDOUT'])));
    assert.equal(await exchange(loopback, PORT, ''), '');
    await listener.close();
  });

  await check(`${variant}: a worker that ends in the middle of a connect ends cleanly`, async () => {
    const program = `
      const addon = require(require('node:worker_threads').workerData);
      addon.vsockConnect(${LOOPBACK_CID}, ${ABSENT_PORT}, () => undefined);
      process.exit(7);`;
    const [exitCode] = await once(new Worker(program, { eval: true, workerData: ADDON_PATH }), 'exit');
    assert.equal(exitCode, 7);
  });

  await check(`${variant}: a signal and a limit do not touch a connection that has been made`, async () => {
    const listener = await loopback.listen(PORT, echo);
    const controller = new AbortController();
    const socket = await loopback.connect(PORT, { signal: controller.signal, timeoutMs: 500 });
    controller.abort();
    socket.end('still here');
    assert.equal(String(await once(socket, 'data')), 'still here');
    await closed(socket);
    await listener.close();
  });
}

function isTransportError(error: unknown, codes: ReadonlySet<string>): true {
  assert(error instanceof TransportError, String(error));
  assert(codes.has(error.code), `${error.code} is none of ${[...codes].join(', ')}`);
  return true;
}

function block(milliseconds: number): void {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
}
