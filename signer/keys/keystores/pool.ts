// Decrypts keystores in worker threads (specification/keys.md#keystores). One pool serves the process.

import { totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { copyOffHeap, type DecryptedKeystore, type Keystore, keyDerivationMemoryBytes } from './cipher.ts';
import type { KeystoreAnswer, KeystoreJob } from './keystore-worker.ts';

const KEYSTORE_MEMORY_BYTES = 256 * 2 ** 20;
export const MAX_WAITING_KEYSTORES = 1024;

interface KeystorePoolOptions {
  readonly keystoreLoadConcurrency: number;
  readonly memoryLimitBytes: number;
  readonly cores: number;
}

export type PoolAnswer = DecryptedKeystore | { readonly refused: 'too_much_memory' | 'decryption_failed' };

export function memoryLimitBytes(): number {
  // Without a limit Node answers 0 or an absurdly large number.
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}

export function concurrentKeystores(options: KeystorePoolOptions): number {
  const byMemory = Math.floor(options.memoryLimitBytes / 4 / KEYSTORE_MEMORY_BYTES);
  return Math.max(1, Math.min(options.keystoreLoadConcurrency, options.cores, byMemory));
}

interface WaitingJob extends KeystoreJob {
  readonly weight: number;
  readonly resolve: (answer: PoolAnswer) => void;
  readonly reject: (error: unknown) => void;
}

export class KeystorePool {
  readonly concurrency: number;
  readonly #memoryLimitBytes: number;
  readonly #log: Log;
  readonly #waiting: WaitingJob[] = [];
  readonly #idle = new Set<Worker>();
  readonly #busy = new Map<Worker, WaitingJob>();
  #free: number;
  #closed = false;

  constructor(options: KeystorePoolOptions, parts: { log: Log }) {
    this.#log = parts.log;
    this.concurrency = concurrentKeystores(options);
    this.#memoryLimitBytes = options.memoryLimitBytes;
    this.#free = this.concurrency;
  }

  /**
   * @param password taken over and wiped @param from `load`: never refused, or a client's import could abort the start
   * @returns the secret key, which the caller wipes, or why there is none @throws `overloaded`, `shutting_down`
   */
  async decrypt(keystore: Keystore, password: Uint8Array, from: 'request' | 'load' = 'request'): Promise<PoolAnswer> {
    const own = copyOffHeap(password);
    password.fill(0);
    try {
      return await this.#enqueue(keystore, own, from);
    } finally {
      // Otherwise a worker took it, and wipes it.
      if (!own.buffer.detached) own.fill(0);
    }
  }

  async endIdleWorkers(): Promise<void> {
    const workers = [...this.#idle];
    this.#idle.clear();
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const job of this.#waiting.splice(0)) job.reject(new SignerError('shutting_down'));
    await Promise.all([...this.#busy.keys()].map((worker) => worker.terminate()));
    await this.endIdleWorkers();
  }

  async #enqueue(keystore: Keystore, password: Uint8Array<ArrayBuffer>, from: 'request' | 'load'): Promise<PoolAnswer> {
    if (this.#closed) throw new SignerError('shutting_down');
    const memoryBytes = keyDerivationMemoryBytes(keystore.keyDerivation);
    // The usual keystore is always tried; a larger one only where it leaves half of the memory to the signer.
    if (memoryBytes > Math.max(this.#memoryLimitBytes / 2, KEYSTORE_MEMORY_BYTES * 1.01)) {
      return { refused: 'too_much_memory' };
    }
    if (from === 'request' && this.#waiting.length >= MAX_WAITING_KEYSTORES) throw new SignerError('overloaded');
    const weight = Math.max(1, Math.min(this.concurrency, Math.round(memoryBytes / KEYSTORE_MEMORY_BYTES)));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ keystore, password, weight, resolve, reject });
      this.#dispatch();
    });
  }

  /** In order: a heavy keystore waits until it fits and is not overtaken for ever. */
  #dispatch(): void {
    for (let job = this.#waiting[0]; job !== undefined && job.weight <= this.#free; job = this.#waiting[0]) {
      this.#waiting.shift();
      this.#free -= job.weight;
      const worker = this.#takeWorker();
      this.#busy.set(worker, job);
      const { keystore, password } = job;
      worker.postMessage({ keystore, password } satisfies KeystoreJob, [password.buffer]);
    }
  }

  #takeWorker(): Worker {
    for (const worker of this.#idle) {
      this.#idle.delete(worker);
      return worker;
    }
    // Neither the environment, which may hold tokens, nor the flags of the process go to the worker.
    const worker = new Worker(new URL('./keystore-worker.ts', import.meta.url), { env: {}, execArgv: [] });
    worker.on('message', (answer: KeystoreAnswer) => {
      this.#idle.add(worker);
      if ('fault' in answer) this.#log.error({ fault: answer.fault }, 'the keystore worker could not decrypt');
      this.#finish(worker, 'fault' in answer ? { refused: 'decryption_failed' } : answer);
    });
    // 'exit' follows and answers the job.
    worker.on('error', (error) => this.#log.error({ err: error }, 'a keystore worker died'));
    worker.on('exit', () => {
      this.#idle.delete(worker);
      this.#finish(worker, { refused: 'decryption_failed' });
    });
    return worker;
  }

  #finish(worker: Worker, answer: PoolAnswer): void {
    const job = this.#busy.get(worker);
    if (job === undefined) return;
    this.#busy.delete(worker);
    this.#free += job.weight;
    if (!this.#closed) job.resolve(answer);
    else {
      if ('secretKey' in answer) answer.secretKey.fill(0);
      job.reject(new SignerError('shutting_down'));
    }
    this.#dispatch();
  }
}
