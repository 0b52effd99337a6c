// A light load generator, run as a process of its own: raw keep-alive sockets, requests written as prepared bytes, answers
// read only as far as status and length. Talks to its parent over IPC. Loopback only.

import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

export interface LoadPlan {
  readonly port: number;
  readonly tls: boolean;
  readonly connections: number;
  readonly token: string;
  /** Sent in order, each once, by whichever connection is free. */
  readonly requests: readonly { readonly publicKey: string; readonly body: string }[];
  /** Requests a second; unset: as fast as the answers come. */
  readonly ratePerSecond?: number;
}

export interface LoadResult {
  readonly seconds: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** By status, milliseconds until the last such answer. */
  readonly slowest: Readonly<Record<string, number>>;
  /** What generating the load took of the cores that the signer runs on. */
  readonly cpuSeconds: number;
}

async function run(plan: LoadPlan): Promise<LoadResult> {
  const prepared = plan.requests.map(({ publicKey, body }) =>
    Buffer.from(
      `POST /api/v1/eth2/sign/${publicKey} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${plan.token}\r\n` +
        `Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  );
  const statuses: Record<string, number> = {};
  const latencies: number[] = [];
  const slowest: Record<string, number> = {};
  const sockets = await Promise.all(Array.from({ length: plan.connections }, () => open(plan)));
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  let next = 0;
  const due = (index: number): number =>
    plan.ratePerSecond === undefined ? 0 : started + (index * 1000) / plan.ratePerSecond;

  await Promise.all(
    sockets.map(async (socket) => {
      const read = answerReader(socket);
      while (next < prepared.length) {
        const index = next++;
        const wait = due(index) - performance.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
        const sent = plan.ratePerSecond === undefined ? performance.now() : Math.max(due(index), started);
        socket.write(prepared[index] ?? '');
        const status = await read();
        const latency = performance.now() - sent;
        latencies.push(latency);
        slowest[status] = Math.max(slowest[status] ?? 0, latency);
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
    }),
  );
  const seconds = (performance.now() - started) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  for (const socket of sockets) socket.destroy();
  latencies.sort((a, b) => a - b);
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { seconds, statuses, p50: at(0.5), p99: at(0.99), slowest, cpuSeconds: (cpu.user + cpu.system) / 1e6 };
}

function open({ port, tls }: LoadPlan): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket: Socket = tls
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => resolve(socket)) // a benchmark's own certificate
      : connect({ port, host: '127.0.0.1' }, () => resolve(socket));
    socket.setNoDelay(true);
    socket.once('error', reject);
  });
}

/** Each call resolves with the status of the next answer. */
function answerReader(socket: Socket): () => Promise<string> {
  let received = '';
  let deliver: ((status: string) => void) | undefined;
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    received += chunk;
    const head = received.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
    if (received.length < head + 4 + length) return;
    const status = received.slice(9, 12);
    received = received.slice(head + 4 + length);
    deliver?.(status);
  });
  socket.on('close', () => deliver?.('closed'));
  socket.on('error', () => deliver?.('error'));
  return () => new Promise((resolve) => (deliver = resolve));
}

process.on('message', (plan: LoadPlan) => {
  void run(plan).then((result) => process.send?.(result));
});
process.send?.('started');
