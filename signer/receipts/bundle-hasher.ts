// Hashes bundles of entries beside the main thread, which signs meanwhile. A thread that ends costs only time: what it
// had not answered, and everything after that, is hashed here. So a log never lacks a hash, and nothing waits for one.

import { Worker } from 'node:worker_threads';
import type { Log } from '../../common/observe/log.ts';
import { rootOfBundle } from './bundle-hash.ts';

const WORKER = new URL('./bundle-worker.ts', import.meta.url);

export interface BundleHasher {
  /** @param bundle a full one; its root is settled in the order of the calls, and never rejects for one of the log */
  hash(bundle: Uint8Array): Promise<Uint8Array>;
  /** Later bundles are hashed here. */
  close(): Promise<void>;
}

interface Job {
  readonly bundle: Uint8Array;
  readonly resolve: (root: Uint8Array) => void;
}

/** @param workerUrl tests put a worker here that fails */
export function bundleHasher(log: Log, workerUrl: URL = WORKER): BundleHasher {
  const waiting: Job[] = [];
  let worker: Worker | undefined;
  let isOver = false;

  const finishHere = (): void => {
    worker = undefined;
    isOver = true;
    for (const { bundle, resolve } of waiting.splice(0)) resolve(rootOfBundle(bundle));
  };
  const start = (): Worker => {
    // Neither the environment, which may hold tokens, nor the flags of the process go to the worker.
    const started = new Worker(workerUrl, { env: {}, execArgv: [], name: 'receipts' });
    started.on('message', (root: Uint8Array) => {
      if (worker !== started) return; // what it had posted before it ended was hashed here
      waiting.shift()?.resolve(root);
      if (waiting.length === 0) started.unref();
    });
    started.on('error', (error) => log.warn({ err: error }, 'receipts: the thread ended; the signer hashes the log'));
    started.on('exit', () => {
      if (worker === started) finishHere();
    });
    return started;
  };

  return {
    hash(bundle) {
      if (isOver) return Promise.resolve(rootOfBundle(bundle));
      const { promise, resolve } = Promise.withResolvers<Uint8Array>();
      waiting.push({ bundle, resolve });
      try {
        worker ??= start();
        worker.ref();
        worker.postMessage(bundle);
      } catch (error) {
        log.warn({ err: error }, 'receipts: there is no thread; the signer hashes the log');
        finishHere();
      }
      return promise;
    },
    async close() {
      const ended = worker;
      finishHere();
      await ended?.terminate();
    },
  };
}
