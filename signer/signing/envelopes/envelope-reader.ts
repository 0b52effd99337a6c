// Reads large signing bodies beside the main thread: parsing and hashing 10 MiB takes half a second. The worker has its
// own heap, so a body that needs too much memory ends the worker and not the signer.

import { Worker } from 'node:worker_threads';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import type { EnvelopeAnswer, EnvelopeJob } from './envelope-worker.ts';

/** Smaller bodies are read in some milliseconds, at once. */
export const MAX_BODY_READ_AT_ONCE_BYTES = 32_768;
export const MAX_WAITING_BODIES = 16;
const WORKER_HEAP_MB = 512;
const WORKER = new URL('./envelope-worker.ts', import.meta.url);

export interface EnvelopeReader {
  /** Takes the body over. @throws SignerError `overloaded`, `internal_error`; the signal's reason when it aborts */
  read(body: Uint8Array, signal: AbortSignal): Promise<EnvelopeAnswer>;
  close(): Promise<void>;
}

interface Job extends EnvelopeJob {
  readonly resolve: (answer: EnvelopeAnswer) => void;
  readonly reject: (error: unknown) => void;
}

export interface EnvelopeReaderOptions {
  readonly log: Log;
  readonly workerUrl?: URL | undefined;
}

export function envelopeReader({ log, workerUrl = WORKER }: EnvelopeReaderOptions): EnvelopeReader {
  const waiting = new Set<Job>();
  let worker: Worker | undefined;
  let running: Job | undefined;

  const next = (): void => {
    const [job] = waiting;
    if (running !== undefined || job === undefined) return;
    waiting.delete(job);
    try {
      worker ??= start();
      worker.postMessage({ body: job.body } satisfies EnvelopeJob, [job.body.buffer]);
      running = job;
    } catch (error) {
      // No thread is to be had: this body fails alone, and the next one tries again.
      job.reject(new SignerError('internal_error', { cause: error }));
      next();
    }
  };
  const finish = (settle: (job: Job) => void): void => {
    if (running !== undefined) settle(running);
    running = undefined;
    next();
  };
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
      if (worker === started) finish((job) => job.resolve(answer));
    });
    started.on('error', (error) => log.error({ err: error }, 'the worker that reads envelopes died'));
    started.on('exit', () => {
      if (worker !== started) return; // it was given up, and its job with it
      worker = undefined;
      finish((job) => job.reject(new SignerError('internal_error', { cause: new Error('the envelope worker ended') })));
    });
    return started;
  };
  const giveUp = (job: Job): void => {
    if (waiting.delete(job) || running !== job) return;
    void worker?.terminate();
    worker = undefined;
    finish(() => undefined);
  };

  return {
    async read(body, signal) {
      signal.throwIfAborted();
      if (waiting.size >= MAX_WAITING_BODIES)
        throw new SignerError('overloaded', { hint: 'too many large bodies wait' });
      const { promise, resolve, reject } = Promise.withResolvers<EnvelopeAnswer>();
      const job: Job = { body: ownBuffer(body), resolve, reject };
      const abandon = (): void => {
        reject(signal.reason);
        giveUp(job);
      };
      signal.addEventListener('abort', abandon, { once: true });
      waiting.add(job);
      next();
      try {
        return await promise;
      } finally {
        signal.removeEventListener('abort', abandon);
      }
    },
    async close() {
      const ended = worker;
      worker = undefined;
      for (const job of [...waiting, ...(running === undefined ? [] : [running])])
        job.reject(new SignerError('shutting_down'));
      waiting.clear();
      running = undefined;
      await ended?.terminate();
    },
  };
}

/** A buffer that nothing else lies in, so that it can go to the worker without a copy; otherwise a copy. */
function ownBuffer(body: Uint8Array): Uint8Array<ArrayBuffer> {
  const isAlone =
    body.buffer instanceof ArrayBuffer && body.byteOffset === 0 && body.length > body.buffer.byteLength / 4;
  return isAlone ? (body as Uint8Array<ArrayBuffer>) : Uint8Array.from(body);
}
