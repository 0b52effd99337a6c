// The yardstick of a start: raw scrypt at a keystore's full price, and raw public keys of @chainsafe/blst, on as many
// threads as there are cores. The same threads make the keystores that the start is measured with.

import { scryptSync } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { parentPort, Worker, workerData } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';
import { FULL_SCRYPT, testSecret, writeKeystore } from '../../test/support/keys.ts';

export interface RawOpening {
  /** On all cores. */
  readonly perSecond: number;
  /** CPU seconds of one. */
  readonly cpuSeconds: number;
}

type Work =
  | { readonly what: 'scrypt' | 'publicKeys'; readonly numbers: readonly number[] }
  | { readonly what: 'keystores'; readonly numbers: readonly number[]; readonly folder: string };

const THREADS = availableParallelism();
/** That of FULL_SCRYPT, as OpenSSL takes it: 256 MiB, and what it adds. */
const COST = { N: 2 ** 18, r: 8, p: 1, maxmem: 300 * 2 ** 20 };

export async function measureRaw(what: 'scrypt' | 'publicKeys', count: number): Promise<RawOpening> {
  const numbers = Array.from({ length: count }, (_, number) => number);
  const shares = await onAllThreads({ what, numbers });
  const seconds = Math.max(...shares.map((share) => share.seconds));
  const cpuSeconds = shares.reduce((sum, share) => sum + share.cpuSeconds, 0);
  return { perSecond: count / seconds, cpuSeconds: cpuSeconds / count };
}

/** Writes the scrypt keystores of these numbers, at their full price. */
export async function makeKeystores(folder: string, numbers: readonly number[]): Promise<void> {
  await onAllThreads({ what: 'keystores', numbers, folder });
}

interface Share {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

function onAllThreads(work: Work): Promise<Share[]> {
  const shares = Array.from({ length: THREADS }, (_, thread) =>
    work.numbers.filter((_number, at) => at % THREADS === thread),
  );
  return Promise.all(shares.map((numbers) => inWorker({ ...work, numbers })));
}

function inWorker(work: Work): Promise<Share> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL('./raw-opening.ts', import.meta.url), { workerData: { rawOpening: work } });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

const work: Work | undefined = workerData?.rawOpening;
if (work !== undefined) {
  const secrets = work.numbers.map((number) => [number, testSecret(number)] as const);
  const [startedAt, cpuBefore] = [performance.now(), process.threadCpuUsage()];
  for (const [number, secret] of secrets) {
    if (work.what === 'keystores') writeKeystore(work.folder, `k${number}`, secret, 'password', FULL_SCRYPT);
    else if (work.what === 'publicKeys') SecretKey.fromBytes(secret).toPublicKey().toBytes();
    else scryptSync('password', secret, 32, COST);
  }
  const { user, system } = process.threadCpuUsage(cpuBefore);
  const share: Share = { seconds: (performance.now() - startedAt) / 1000, cpuSeconds: (user + system) / 1e6 };
  parentPort?.postMessage(share);
}
