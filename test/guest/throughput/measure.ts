// The program of suite "throughput", inside its guest: client and server of every way, and the parent proxy in a
// process of its own. How fast it is decides nothing here; that all bytes arrive does.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { loadAddon } from '../../../signer/native/load.ts';
import { vsockTransport } from '../../../signer/native/vsock.ts';
import { figureLines, measureWays, serve } from '../../support/stream-figures.ts';
import { dial } from '../../support/streams.ts';
import { createChecks } from '../checks.ts';
import { CONFIGURATION_PATH, LOOPBACK_CID, PORTS } from './settings.ts';

/** Some seconds a round without hardware to help. */
const AMOUNTS = { rounds: 3, mebibytes: 4, roundTrips: 60, connections: 40 } as const;

const checks = createChecks();
const addon = loadAddon();
assert(addon !== undefined, 'the guest has the addon');
const vsock = vsockTransport(addon, { peerCid: LOOPBACK_CID });
const upstream = createServer({ allowHalfOpen: true }, serve).listen(PORTS.upstream, '127.0.0.1');
await once(upstream, 'listening');
for (const port of [PORTS.enclave, PORTS.direct]) await vsock.listen(port, serve);
await startParentProxy();

const ways = {
  'plain TCP': () => dial(PORTS.upstream),
  vsock: () => vsock.connect(PORTS.direct),
  ingress: () => dial(PORTS.ingress),
  egress: () => vsock.connect(PORTS.egress),
};
await checks.check('plain TCP, vsock, and the parent proxy both ways: every byte arrives', async () => {
  const results = await measureWays(ways, AMOUNTS);
  const { rounds, mebibytes, roundTrips, connections } = AMOUNTS;
  const amounts = `${mebibytes} MiB, ${roundTrips} round trips, ${connections} connections`;
  process.stdout.write(`bench: medians of ${rounds} rounds of ${amounts}; in brackets the ratio to plain TCP\n`);
  for (const line of figureLines(results)) process.stdout.write(`bench: ${line}\n`);
});
process.exit(checks.failed === 0 ? 0 : 1);

async function startParentProxy(): Promise<ChildProcess> {
  const proxy = spawn(process.execPath, [`${import.meta.dirname}/parent-proxy.js`, '-c', CONFIGURATION_PATH], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  proxy.once('close', (code) => reject(new Error(`the parent proxy ended with ${code}`)));
  createInterface({ input: proxy.stdout }).on('line', (line) => {
    process.stdout.write(`[parent-proxy] ${line}\n`);
    if (line.includes('"msg":"ready"')) resolve();
  });
  await promise;
  return proxy;
}
