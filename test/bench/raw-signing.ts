// The yardstick: raw @chainsafe/blst signing. S is the CPU of one signature, R2 the rate of signing on two threads.

import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';

export interface RawRate {
  /** CPU seconds of one signature. */
  readonly s: number;
  /** Signatures a second on all (two) cores. */
  readonly r2: number;
}

/** Takes about `seconds`. */
export async function measureRawSigning(seconds: number): Promise<RawRate> {
  const threads = Math.min(2, availableParallelism());
  const cpuBefore = process.cpuUsage();
  const started = performance.now();
  const counts = await Promise.all(Array.from({ length: threads }, () => signInWorker(seconds)));
  const wall = (performance.now() - started) / 1000;
  const cpu = process.cpuUsage(cpuBefore);
  const signatures = counts.reduce((sum, count) => sum + count, 0);
  return { s: (cpu.user + cpu.system) / 1e6 / signatures, r2: signatures / wall };
}

function signInWorker(seconds: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./raw-signing.ts', import.meta.url), { workerData: { seconds } });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

if (!isMainThread && typeof workerData?.seconds === 'number') {
  const key = SecretKey.fromKeygen(Buffer.alloc(32, 7));
  const root = Buffer.alloc(32);
  const end = performance.now() + workerData.seconds * 1000;
  let count = 0;
  while (performance.now() < end) {
    root.writeUInt32LE(count);
    key.sign(root);
    count += 1;
  }
  parentPort?.postMessage(count);
}
