// The parent proxy beside plain TCP, as ratios of one run: throughput, round trips, connections. Unix sockets stand for
// vsock here; a guest runs the same over vsock (test/guest/throughput). The proxy is a process of its own; client and
// server share this one, so plain TCP has the easier part.
//
// Usage: bin/pinned-node lab/bench/parent-proxy.ts [--rounds N] [--mebibytes N]

import { parseArgs } from 'node:util';
import { tcpServer } from '../../test/support/parent-proxy.ts';
import { startProxyProcess } from '../../test/support/parent-proxy-process.ts';
import { figureLines, measureWays, serve } from '../../test/support/stream-figures.ts';
import { dial } from '../../test/support/streams.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, mebibytes: { type: 'string', default: '256' } },
});
const rounds = Number(values.rounds);

const upstream = await tcpServer(serve);
const proxy = await startProxyProcess({ egress: { 8001: upstream.port }, limits: { max_connections_per_port: 4096 } });
const enclave = await proxy.enclave.listen(9000, serve);
const ways = {
  'plain TCP': () => dial(upstream.port),
  ingress: () => dial(proxy.ingressPorts.probes),
  egress: () => proxy.enclave.connect(8001),
};
const results = await measureWays(ways, {
  rounds,
  mebibytes: Number(values.mebibytes),
  roundTrips: 5000,
  connections: 500,
});
process.stdout.write(`medians of ${rounds} rounds, in brackets the ratio to plain TCP\n`);
for (const line of figureLines(results)) process.stdout.write(`${line}\n`);
await enclave.close();
await proxy.stop();
await upstream.close();
