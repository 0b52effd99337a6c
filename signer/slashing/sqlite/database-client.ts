// What was asked of a worker that died is answered `slashing_unavailable`: it may have been done or not.

import { Worker } from 'node:worker_threads';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { hasEnded, WORKER_CLOSE_WAIT_MS, WORKER_LIMITS } from './checkpoints.ts';
import type { CallMessage, DatabaseCalls } from './database-worker.ts';
import type { FileName } from './file/open-files.ts';
import type { DatabaseWorkerData, ReplyMessage } from './wire.ts';

/** Doubled up to the largest, and back at the first answer. */
const FIRST_RESTART_MS = 50;
const LARGEST_RESTART_MS = 10_000;

type PendingCall = Pick<PromiseWithResolvers<never>, 'resolve' | 'reject'>;

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

  /** A worker that is started later refuses another. */
  expectFile(file: FileName): void {
    this.#data = { ...this.#data, file };
  }

  /** @throws SignerError slashing_unavailable or slashing_integrity, the database's error as its cause */
  call<Name extends keyof DatabaseCalls>(
    call: Name,
    arguments_: Parameters<DatabaseCalls[Name]>,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Awaited<ReturnType<DatabaseCalls[Name]>>> {
    const worker = this.#worker;
    if (worker === undefined) {
      return Promise.reject(
        new SignerError('slashing_unavailable', { detail: { worker: this.#closed ? 'closed' : 'starting' } }),
      );
    }
    return new Promise((resolve, reject) => {
      this.#lastId += 1;
      this.#pending.set(this.#lastId, { resolve, reject });
      worker.postMessage({ id: this.#lastId, call, arguments_ } satisfies CallMessage, transfer);
    });
  }

  /** @param endedAt noted in the record; null: nothing is @returns the number of the end, null: it is not noted */
  async close(endedAt: number | null = null, waitMs = WORKER_CLOSE_WAIT_MS): Promise<string | null> {
    let noted: string | null = null;
    if (this.#closed) return noted;
    this.#closed = true;
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker !== undefined) {
      const ended = hasEnded(worker, waitMs, () => {
        this.#log.error({}, 'the slashing database worker does not answer: it is given up');
        this.#rejectPending({ worker: 'given up' });
      });
      const note = this.call('close', [endedAt]).catch(() => null);
      this.#worker = undefined;
      await ended;
      noted = await note;
    }
    this.#data.integrityKey?.fill(0);
    return noted;
  }

  #start(): void {
    const worker = new Worker(new URL('./database-worker.ts', import.meta.url), {
      workerData: { ...this.#data, integrityKey: this.#data.integrityKey && Uint8Array.from(this.#data.integrityKey) },
      name: 'slashing database',
      resourceLimits: WORKER_LIMITS,
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
    if ('reason' in reply) {
      const { reason, error, hint } = reply;
      pending?.reject(new SignerError(reason, { cause: error, ...(hint === undefined ? {} : { hint }) }));
      return;
    }
    // The worker answers each call with the result of its name (wire.ts).
    pending?.resolve(reply.result as never);
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
