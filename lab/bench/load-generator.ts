// A light load generator, run as a process of its own, so that it costs the signer's cores little. Talks to its parent
// over IPC. Loopback only.

import { openClient } from './raw-client.ts';

interface PlannedRequest {
  /** Undefined: a batch, whose body names its keys. */
  readonly publicKey: string | undefined;
  readonly body: string;
}

export interface LoadPlan {
  readonly port: number;
  readonly tls: boolean;
  readonly connections: number;
  readonly token: string;
  /** Sent in order, each once, by whichever connection is free. */
  readonly requests: readonly PlannedRequest[];
  /** Requests a second; unset: as fast as the answers come. */
  readonly ratePerSecond?: number;
}

export interface LoadResult {
  readonly seconds: number;
  /** `refused` for an answer to a batch that has an error in it. */
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
      `POST /api/v1/eth2/sign${publicKey === undefined ? '' : `/${publicKey}`} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${plan.token}\r\n` +
        `Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    ),
  );
  const statuses: Record<string, number> = {};
  const latencies: number[] = [];
  const slowest: Record<string, number> = {};
  const clients = await Promise.all(Array.from({ length: plan.connections }, () => openClient(plan)));
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  let next = 0;
  const due = (index: number): number =>
    plan.ratePerSecond === undefined ? 0 : started + (index * 1000) / plan.ratePerSecond;

  await Promise.all(
    clients.map(
      (client) =>
        new Promise<void>((resolve) => {
          let sent = 0;
          const send = (index: number): void => {
            sent = plan.ratePerSecond === undefined ? performance.now() : Math.max(due(index), started);
            client.ask(prepared[index] ?? Buffer.alloc(0));
          };
          const sendNext = (): void => {
            const index = next++;
            const wait = due(index) - performance.now();
            if (index >= prepared.length) resolve();
            else if (wait > 0) setTimeout(send, wait, index);
            else send(index);
          };
          client.onAnswer = (status) => {
            const latency = performance.now() - sent;
            latencies.push(latency);
            slowest[status] = Math.max(slowest[status] ?? 0, latency);
            statuses[status] = (statuses[status] ?? 0) + 1;
            sendNext();
          };
          sendNext();
        }),
    ),
  );
  const seconds = (performance.now() - started) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  for (const { close } of clients) close();
  latencies.sort((a, b) => a - b);
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { seconds, statuses, p50: at(0.5), p99: at(0.99), slowest, cpuSeconds: (cpu.user + cpu.system) / 1e6 };
}

process.on('message', (plan: LoadPlan) => {
  void run(plan).then((result) => process.send?.(result));
});
process.send?.('started');
