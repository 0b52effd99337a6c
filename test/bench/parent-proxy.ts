// The parent proxy beside plain TCP, as ratios of one run: throughput, round trips, connections. Unix sockets stand for vsock here; a guest
// runs the same over vsock. The proxy is a process of its own; client and server share this one, so plain TCP has the easier part.
//
// Usage: bin/pinned-node test/bench/parent-proxy.ts [--rounds N] [--mebibytes N]

import { once } from 'node:events';
import type { Socket } from 'node:net';
import { parseArgs } from 'node:util';
import { tcpServer } from '../support/parent-proxy.ts';
import { startProxyProcess } from '../support/parent-proxy-process.ts';
import { dial, hear, hearBytes } from '../support/streams.ts';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, mebibytes: { type: 'string', default: '256' } },
});
const rounds = Number(values.rounds);
const MEBIBYTE = 1024 * 1024;
const totalBytes = Number(values.mebibytes) * MEBIBYTE;
const ROUND_TRIPS = 5000;
const CONNECTIONS = 500;
/** As a signing request and its answer. */
const MESSAGE_BYTES = 700;

interface Figures {
  readonly mebibytesPerSecond: number;
  readonly roundTripMicroseconds: number;
  readonly connectionsPerSecond: number;
}

type Connect = () => Promise<Socket>;

/** The other end: `s` swallows and answers with one byte at the end; anything else is echoed. */
function serve(socket: Socket): void {
  socket.on('error', () => undefined);
  socket.once('data', (first: Buffer) => {
    if (first[0] !== 's'.charCodeAt(0)) {
      socket.write(first);
      socket.pipe(socket);
      return;
    }
    socket.resume();
    socket.once('end', () => socket.end('.'));
  });
}

const upstream = await tcpServer(serve);
const proxy = await startProxyProcess({ egress: { 8001: upstream.port }, limits: { max_connections_per_port: 4096 } });
const enclave = await proxy.enclave.listen(9000, serve);
const ways: Readonly<Record<string, Connect>> = {
  'plain TCP': () => dial(upstream.port),
  ingress: () => dial(proxy.ingressPorts.probes),
  egress: () => proxy.enclave.connect(8001),
};

const results = new Map<string, Figures[]>(Object.keys(ways).map((name) => [name, []]));
for (let round = 0; round <= rounds; round++) {
  for (const [name, connect] of Object.entries(ways)) {
    const figures = await measure(connect);
    if (round > 0) results.get(name)?.push(figures); // the first is for the compilers
  }
}
report();
await enclave.close();
await proxy.stop();
await upstream.close();

async function measure(connect: Connect): Promise<Figures> {
  return {
    mebibytesPerSecond: await throughput(connect),
    roundTripMicroseconds: await roundTrip(connect),
    connectionsPerSecond: await connections(connect),
  };
}

async function throughput(connect: Connect): Promise<number> {
  const socket = await connect();
  const block = Buffer.alloc(MEBIBYTE, 's');
  const started = performance.now();
  for (let sent = 0; sent < totalBytes; sent += block.length) if (!socket.write(block)) await once(socket, 'drain');
  socket.end();
  await hear(socket);
  return totalBytes / MEBIBYTE / ((performance.now() - started) / 1000);
}

async function roundTrip(connect: Connect): Promise<number> {
  const socket = await connect();
  const message = Buffer.alloc(MESSAGE_BYTES, 'e');
  const started = performance.now();
  for (let trip = 0; trip < ROUND_TRIPS; trip++) {
    socket.write(message);
    await hearBytes(socket, MESSAGE_BYTES);
  }
  socket.destroy();
  return ((performance.now() - started) * 1000) / ROUND_TRIPS;
}

async function connections(connect: Connect): Promise<number> {
  const started = performance.now();
  for (let batch = 0; batch < CONNECTIONS; batch += 50) {
    await Promise.all(
      Array.from({ length: 50 }, async () => {
        const socket = await connect();
        socket.end('e');
        await hear(socket);
      }),
    );
  }
  return CONNECTIONS / ((performance.now() - started) / 1000);
}

function report(): void {
  const median = (name: string, figure: keyof Figures): number => {
    const sorted = (results.get(name) ?? []).map((figures) => figures[figure]).toSorted((left, right) => left - right);
    return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  };
  process.stdout.write(`medians of ${rounds} rounds, in brackets the ratio to plain TCP\n`);
  for (const figure of ['mebibytesPerSecond', 'roundTripMicroseconds', 'connectionsPerSecond'] as const) {
    const plain = median('plain TCP', figure);
    const cells = Object.keys(ways).map((name) => {
      const value = median(name, figure);
      return `${name} ${value.toFixed(0)} (${(value / plain).toFixed(2)})`;
    });
    process.stdout.write(`${figure.padEnd(24)}${cells.join('   ')}\n`);
  }
}
