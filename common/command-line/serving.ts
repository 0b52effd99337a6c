// How a program that serves runs and ends: by signals gracefully first, by bugs at once.

import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import type { Worker } from 'node:worker_threads';
import { EXIT } from './exit-codes.ts';

interface Serving {
  shutDown(): Promise<void>;
}

interface LastWords {
  module(name: 'server'): {
    info(fields: object, message: string): void;
    error(fields: object, message: string): void;
  };
  flush(): void;
  end(): Promise<void>;
}

/** In percent. V8's would collect every few seconds (docs/decisions/0006-threads-for-signing-and-checkpoints.md). */
const HEAP_GROWTH_PERCENT = 200;

export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH_PERCENT}`);
}

export function liveWorkers(): ReadonlySet<Worker> {
  const live = new Set<Worker>();
  process.on('worker', (worker: Worker) => {
    live.add(worker);
    worker.once('exit', () => live.delete(worker));
  });
  return live;
}

const THREADS_END_MS = 250;
const LOOK_AGAIN_MS = 5;
/** Work of Node's pool: files, such as a log that hangs, and names that no server resolves. */
const POOL_WORK: ReadonlySet<string> = new Set(['FSReqCallback', 'FSReqPromise', 'GetAddrInfoReqWrap']);

/** Ending a process joins its threads; for one that hangs in a system call the kernel ends the process. */
async function endProcess(code: number, workers: ReadonlySet<Worker>): Promise<void> {
  setTimeout(() => {
    process.kill(process.pid, 'SIGKILL');
    process.abort(); // the first process of a container cannot kill itself
  }, THREADS_END_MS);
  await Promise.all([...workers].map((worker) => worker.terminate()));
  while (process.getActiveResourcesInfo().some((kind) => POOL_WORK.has(kind))) await pause(LOOK_AGAIN_MS);
  process.exit(code);
}

/** The first signal ends gracefully, a second one at once. */
export function endOnSignals(serving: Serving, workers: ReadonlySet<Worker>, logger: LastWords): void {
  const log = logger.module('server');
  let ending = false;
  const end = async (signal: string): Promise<void> => {
    if (ending) return endProcess(EXIT.failed, workers);
    ending = true;
    log.info({ signal }, 'shutting down');
    await serving.shutDown();
    log.info({}, 'stopped');
    await logger.end();
    await endProcess(EXIT.ok, workers);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void end(signal));
}

/** A bug must not sign on. @param isTaken whether an unhandled rejection is the fault of one request alone */
export function endOnBugs(logger: LastWords, isTaken: (error: unknown) => boolean): void {
  const end = (error: unknown): void => {
    logger.module('server').error({ err: error }, 'the signer ends: a fault that nothing handles');
    logger.flush();
    process.exit(EXIT.bug);
  };
  process.on('uncaughtException', end);
  process.on('unhandledRejection', (error) => {
    if (!isTaken(error)) end(error);
  });
}
