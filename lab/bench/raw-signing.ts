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

/** Takes about `seconds`. What starting the threads costs is not counted. */
export async function measureRawSigning(seconds: number): Promise<RawRate> {
  const threads = Math.min(2, availableParallelism());
  const shares = await Promise.all(Array.from({ length: threads }, () => signInWorker(seconds)));
  const sum = (pick: (share: Share) => number): number => shares.reduce((total, share) => total + pick(share), 0);
  return {
    s: sum(({ cpuSeconds }) => cpuSeconds) / sum(({ signatures }) => signatures),
    r2: sum((share) => share.signatures / share.seconds),
  };
}

/** What one thread did. */
interface Share {
  readonly signatures: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
}

function signInWorker(seconds: number): Promise<Share> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./raw-signing.ts', import.meta.url), { workerData: { seconds } });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

if (!isMainThread && typeof workerData?.seconds === 'number') {
  const key = SecretKey.fromKeygen(Buffer.alloc(32, 7));
  const root = Buffer.alloc(32);
  const cpuBefore = process.threadCpuUsage();
  const started = performance.now();
  const end = started + workerData.seconds * 1000;
  let signatures = 0;
  while (performance.now() < end) {
    root.writeUInt32LE(signatures);
    key.sign(root);
    signatures += 1;
  }
  const cpu = process.threadCpuUsage(cpuBefore);
  const share: Share = {
    signatures,
    seconds: (performance.now() - started) / 1000,
    cpuSeconds: (cpu.user + cpu.system) / 1e6,
  };
  parentPort?.postMessage(share);
}
