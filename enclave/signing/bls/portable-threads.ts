// The worker threads of the portable core. They start together. A worker that ends is started again; the more often its
// place failed in a row, the longer this waits. The core itself fails the jobs of a worker that ended.

import { Worker } from 'node:worker_threads';
import type { Log } from '../../../observe/log.ts';
import type { DerivedMessage, SignedMessage } from './portable-batch.ts';
import { restartDelayMs, type SigningWorker } from './portable-workers.ts';

export interface SigningThreadOptions {
  readonly log: Log;
  readonly url: URL;
  /** The secret keys, which the workers read. */
  readonly region: SharedArrayBuffer;
  readonly onSigned: (worker: SigningWorker, message: SignedMessage) => void;
  readonly onDerived: (worker: SigningWorker, message: DerivedMessage) => void;
  /** A worker ended and is no longer among the living. */
  readonly onEnded: (worker: SigningWorker) => void;
  /** Its place was filled again, or will be later. */
  readonly onReplaced: () => void;
}

export class SigningThreads {
  readonly #options: SigningThreadOptions;
  readonly #workers = new Set<SigningWorker>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  #stays = true;

  constructor(count: number, options: SigningThreadOptions) {
    this.#options = options;
    for (let started = 0; started < count; started++) this.#start(0);
  }

  get alive(): ReadonlySet<SigningWorker> {
    return this.#workers;
  }

  /** From now on no worker that ends is started again. */
  stopReplacing(): void {
    this.#stays = false;
    for (const restart of this.#restarts) clearTimeout(restart);
  }

  async terminate(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.thread.terminate()));
  }

  #start(failuresInARow: number): void {
    const { url, region, log, onSigned, onDerived } = this.#options;
    const thread = new Worker(url, { workerData: { region }, execArgv: [] });
    const worker: SigningWorker = {
      thread,
      batches: new Map(),
      derivations: new Map(),
      outstanding: 0,
      failuresInARow,
    };
    thread.unref();
    thread.on('message', (answer: SignedMessage | DerivedMessage) => {
      if ('publicKeys' in answer) onDerived(worker, answer);
      else onSigned(worker, answer);
    });
    thread.on('error', (error) => log.error({ err: error }, 'a signing worker failed'));
    thread.on('exit', () => this.#onExit(worker));
    this.#workers.add(worker);
  }

  #onExit(worker: SigningWorker): void {
    this.#workers.delete(worker);
    this.#options.onEnded(worker);
    if (!this.#stays) return;
    this.#replace(worker);
    this.#options.onReplaced();
  }

  #replace({ failuresInARow }: SigningWorker): void {
    const delayMs = restartDelayMs(failuresInARow);
    this.#options.log.error(
      { delay_ms: delayMs, failures_in_a_row: failuresInARow },
      'a signing worker ended; it is started again',
    );
    if (delayMs === 0) {
      this.#start(failuresInARow + 1);
      return;
    }
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      this.#start(failuresInARow + 1);
    }, delayMs);
    this.#restarts.add(restart.unref());
  }
}
