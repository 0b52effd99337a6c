// Reads large signing bodies on a thread of its own: parsing and hashing 10 MiB takes half a second. The worker has its
// own heap, so a body that needs too much memory ends the worker and not the signer.

import { Worker } from 'node:worker_threads';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { createPermits } from '../permits.ts';
import type { EnvelopeAnswer, EnvelopeJob } from './envelope-worker.ts';

/** Smaller bodies are read in some milliseconds, at once. */
export const MAX_BODY_READ_AT_ONCE_BYTES = 32_768;
export const MAX_WAITING_BODIES = 16;
const WORKER_HEAP_MB = 512;
const WORKER = new URL('./envelope-worker.ts', import.meta.url);

export interface EnvelopeReader {
  /**
   * Takes the body over. Callers take turns (permits.ts). A body that is being read when its client goes away is read
   * to its end, and the answer is dropped: a new thread for the next body would cost more than the rest of this one.
   * @throws SignerError `overloaded`, `internal_error`, `request_timeout`; the signal's reason when it aborts
   */
  read(body: Uint8Array, signal: AbortSignal, caller?: string): Promise<EnvelopeAnswer>;
  close(): Promise<void>;
}

interface EnvelopeReaderOptions {
  readonly log: Log;
  /** A body that takes longer ends the worker. */
  readonly timeoutSeconds: number;
  readonly workerUrl?: URL | undefined;
}

export function envelopeReader({ log, timeoutSeconds, workerUrl = WORKER }: EnvelopeReaderOptions): EnvelopeReader {
  const permits = createPermits({ maxConcurrentJobs: 1, queueLimit: MAX_WAITING_BODIES, priorityJobs: 0 });
  const closing = new AbortController();
  let worker: Worker | undefined;
  let running: PromiseWithResolvers<EnvelopeAnswer> | undefined;

  const start = (): Worker => {
    // Neither the environment, which may hold tokens, nor the flags of the process go to the worker.
    const started = new Worker(workerUrl, {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: WORKER_HEAP_MB },
    });
    started.unref();
    started.on('message', (answer: EnvelopeAnswer) => {
      // What a worker has posted still arrives after its end, and would answer the body of another client.
      if (worker === started) running?.resolve(answer);
    });
    started.on('error', (error) => log.error({ err: error }, 'the worker that reads envelopes died'));
    started.on('exit', () => {
      if (worker !== started) return; // it was given up, and its job with it
      worker = undefined;
      running?.reject(new Error('the envelope worker ended'));
    });
    return started;
  };
  const giveUp = (reason: 'request_timeout' | 'shutting_down'): Promise<unknown> | undefined => {
    const ended = worker?.terminate();
    worker = undefined;
    running?.reject(new SignerError(reason));
    return ended;
  };
  /** With the permit, which it gives back when the worker is free again. */
  const run = async (body: Uint8Array<ArrayBuffer>): Promise<EnvelopeAnswer> => {
    running = Promise.withResolvers();
    const late = setTimeout(giveUp, timeoutSeconds * 1000, 'request_timeout');
    try {
      worker ??= start();
      worker.postMessage({ body } satisfies EnvelopeJob, [body.buffer]);
      return await running.promise;
    } catch (error) {
      // When no thread is to be had, this body fails alone, and the next one tries again.
      throw error instanceof SignerError ? error : new SignerError('internal_error', { cause: error });
    } finally {
      clearTimeout(late);
      running = undefined;
      permits.release('normal');
    }
  };

  return {
    async read(body, signal, caller) {
      const ended = AbortSignal.any([signal, closing.signal]);
      const turn = permits.acquire('normal', ended, caller);
      if (turn !== undefined) await turn;
      const { promise, resolve, reject } = Promise.withResolvers<EnvelopeAnswer>();
      const abandon = (): void => reject(ended.reason);
      ended.addEventListener('abort', abandon, { once: true });
      try {
        run(ownBuffer(body)).then(resolve, reject);
        return await promise;
      } finally {
        ended.removeEventListener('abort', abandon);
      }
    },
    async close() {
      closing.abort(new SignerError('shutting_down'));
      await giveUp('shutting_down');
    },
  };
}

/** A buffer that nothing else lies in, so that it can go to the worker without a copy; otherwise a copy. */
function ownBuffer(body: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone =
    body.buffer instanceof ArrayBuffer && body.byteOffset === 0 && body.length > body.buffer.byteLength / 4;
  return isAlone ? (body as Uint8Array<ArrayBuffer>) : Uint8Array.from(body);
}
