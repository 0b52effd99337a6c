// The main thread's side of the database worker: calls with answers, and a worker that comes back when it dies.
// Whatever was asked of a worker that died is answered `slashing_unavailable`: it may have been done or not.

import { Worker } from 'node:worker_threads';
import type { Log } from '../../../observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import type { DatabaseCall, DatabaseCalls, DatabaseWorkerData, ReplyMessage } from './calls.ts';
import type { FileName } from './file/open-files.ts';

/** Before the first new start after a worker died; doubled up to the largest, and back at the first answer. */
const FIRST_RESTART_MS = 50;
const LARGEST_RESTART_MS = 10_000;
/** Closing waits so long for the worker, which may hang on its disk, at most. */
export const WORKER_CLOSE_WAIT_MS = 5_000;

interface PendingCall {
  readonly resolve: (result: never) => void;
  readonly reject: (error: SignerError) => void;
}

export class DatabaseClient {
  #data: DatabaseWorkerData;
  readonly #log: Log;
  readonly #pending = new Map<number, PendingCall>();
  #worker: Worker | undefined;
  #restart: NodeJS.Timeout | undefined;
  #restartMs = FIRST_RESTART_MS;
  #lastId = 0;
  #closed = false;

  constructor(data: DatabaseWorkerData, log: Log) {
    // A copy of its own: the key is needed again for every new worker, and wiped at the end.
    this.#data = { ...data, integrityKey: data.integrityKey && Uint8Array.from(data.integrityKey) };
    this.#log = log;
    this.#start();
  }

  /** The database is this file: a worker that is started later refuses another. */
  expectFile(file: FileName): void {
    this.#data = { ...this.#data, file };
  }

  /** @throws SignerError slashing_unavailable or slashing_integrity, the database's error as its cause */
  call<Name extends DatabaseCall>(
    call: Name,
    arguments_: DatabaseCalls[Name][0],
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<DatabaseCalls[Name][1]> {
    const worker = this.#worker;
    if (worker === undefined) {
      return Promise.reject(
        new SignerError('slashing_unavailable', { detail: { worker: this.#closed ? 'closed' : 'starting' } }),
      );
    }
    return new Promise<DatabaseCalls[Name][1]>((resolve, reject) => {
      this.#lastId += 1;
      this.#pending.set(this.#lastId, { resolve, reject });
      worker.postMessage({ id: this.#lastId, call, arguments_ }, transfer);
    });
  }

  async close(waitMs = WORKER_CLOSE_WAIT_MS): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = Promise.withResolvers<void>();
      worker.once('exit', () => ended.resolve());
      const timer = setTimeout(
        () => {
          this.#log.error({}, 'the slashing database worker does not answer: it is given up');
          void worker.terminate();
          worker.unref();
          this.#rejectPending({ worker: 'given up' });
          ended.resolve();
        },
        Math.min(WORKER_CLOSE_WAIT_MS, waitMs),
      );
      this.call('close', {}).catch(() => undefined);
      this.#worker = undefined;
      await ended.promise;
      clearTimeout(timer);
    }
    this.#data.integrityKey?.fill(0);
  }

  #start(): void {
    const worker = new Worker(new URL('./database-worker.ts', import.meta.url), {
      workerData: { ...this.#data, integrityKey: this.#data.integrityKey && Uint8Array.from(this.#data.integrityKey) },
      name: 'slashing database',
    });
    let fault: unknown;
    worker.on('message', (reply: ReplyMessage) => this.#answer(reply));
    worker.on('error', (error) => {
      fault = error;
    });
    // An answer that cannot be read is an answer that never comes: only an end of the worker settles its call.
    worker.on('messageerror', (error) => {
      fault = error;
      void worker.terminate();
    });
    worker.on('exit', () => this.#ended(worker, fault));
    this.#worker = worker;
  }

  #answer(reply: ReplyMessage): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    this.#restartMs = FIRST_RESTART_MS;
    if ('reason' in reply)
      pending?.reject(new SignerError(reply.reason, { cause: reply.error, ...hintOf(reply.hint) }));
    // The worker answers each call with the result of its name (calls.ts).
    else pending?.resolve(reply.result as never);
  }

  #rejectPending(detail: Readonly<Record<string, unknown>>, cause?: unknown): void {
    for (const { reject } of this.#pending.values()) {
      reject(new SignerError('slashing_unavailable', { cause, detail }));
    }
    this.#pending.clear();
  }

  #ended(worker: Worker, fault: unknown): void {
    this.#rejectPending({ worker: 'ended' }, fault);
    if (this.#closed || this.#worker !== worker) return;
    this.#worker = undefined;
    this.#log.error(
      { err: fault, restart_ms: this.#restartMs },
      'the slashing database worker died: it is started again',
    );
    this.#restart = setTimeout(() => this.#start(), this.#restartMs);
    this.#restartMs = Math.min(this.#restartMs * 2, LARGEST_RESTART_MS);
  }
}

function hintOf(hint: string | undefined): { readonly hint?: string } {
  return hint === undefined ? {} : { hint };
}
