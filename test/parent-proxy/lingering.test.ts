// A client that does not get as far as a request, at a parent proxy in front of the RA-TLS listener: the enclave gives
// it up, and it keeps no place at the proxy, although it neither hangs up nor hears.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPlainLogger } from '../../common/observe/plain-logger.ts';
import { pausingClock } from '../../parent-proxy/clock.ts';
import type { ForwardingListener } from '../../parent-proxy/forwarding/forwarding.ts';
import { listenIngress } from '../../parent-proxy/forwarding/ingress.ts';
import { createProxyMetrics, type ProxyMetrics } from '../../parent-proxy/metrics.ts';
import { listenProxyMetrics } from '../../parent-proxy/start.ts';
import type { ProxyWorld } from '../../parent-proxy/world.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { RATLS_PORT } from '../support/ratls-client.ts';
import { type RatlsSigner, startRatlsSigner } from '../support/ratls-signer.ts';
import { closed, dial } from '../support/streams.ts';

const SHORT_MS = 20;
/** Many times the pause between two bytes: only the limit of the whole ends it. */
const LONG_MS = 300;

const nowhere: ProxyWorld['output'] = {
  write: () => true,
  drained: async () => undefined,
};

let signer: RatlsSigner;
let metrics: ProxyMetrics;
let ingress: ForwardingListener;

beforeEach(async () => {
  signer = await startRatlsSigner({ limits: { handshakeTimeoutMs: SHORT_MS } });
  metrics = createProxyMetrics();
  const world = {
    transport: signer.parent,
    clock: pausingClock,
    logger: createPlainLogger(nowhere, pausingClock),
    metrics,
    output: nowhere,
  };
  const limits = {
    maxConnections: 1,
    idleTimeoutMs: LONGEST_WAIT_MS,
    lingerMs: SHORT_MS,
    connectTimeoutMs: LONGEST_WAIT_MS,
    connectRetryMs: 0,
  };
  const listen = { host: '127.0.0.1', port: 0 };
  ingress = await listenIngress({ name: 'tls', listen, enclavePort: RATLS_PORT, proxyHeader: true, limits }, world);
});
afterEach(async () => {
  await ingress.close();
  ingress.cutAll();
  await ingress.empty();
  await signer.close();
});

describe.each([
  ['nothing', false],
  ['a byte now and then', true],
])('a client that sends %s', (_what, sends) => {
  it('leaves its place at the TLS port to the next', async () => {
    for (const round of [1, 2, 3]) {
      const client = await dial(ingress.port);
      const bytes = setInterval(() => sends && client.writable && client.write('\x16'), SHORT_MS / 4);
      client.resume();
      await expect.poll(() => signer.refused.length).toBe(round);
      await ingress.empty();
      clearInterval(bytes);
      client.destroy();
    }
    expect(signer.refused).toEqual(['handshake', 'handshake', 'handshake']);
  });

  it('to the metrics of the proxy is cut off', async () => {
    const listener = await listenProxyMetrics(metrics, { host: '127.0.0.1', port: 0 }, LONG_MS);
    const client = await dial(listener.port);
    client.on('end', () => client.end()).resume();
    let sent = 0;
    const bytes = setInterval(() => {
      if (sends && client.writable) client.write('GET /metrics HTTP/1.1\r\n'[sent++] ?? 'x');
    }, SHORT_MS / 4);
    await closed(client);
    expect(client.closed).toBe(true);
    clearInterval(bytes);
    await listener.close();
  });
});
