// Checkpoints between the commits: SQLite's own come in the middle of a commit, and kept the whole batch waiting for 10
// to 40 ms. Without this SQLite makes them in a commit, when the log has grown to its bound (tables/schema.ts).

import { Worker } from 'node:worker_threads';
import { inTime } from '../../../common/flow/in-time.ts';
import type { Log } from '../../../common/observe/log.ts';
import type { CheckpointData, CheckpointReply, CheckpointRequest } from './file/checkpoint-worker.ts';

/** Recorded between two checkpoints: some 700 pages, so that one is short and the disk is soon free for commits. */
const MESSAGES = 256;

export type Checkpoints = ReturnType<typeof checkpointsBesideCommits>;

/** @param workerUrl tests put a worker here that fails */
export function checkpointsBesideCommits(
  data: CheckpointData,
  log: Log,
  workerUrl: URL = new URL('./file/checkpoint-worker.ts', import.meta.url),
) {
  let worker: Worker | undefined;
  let isOver = false;
  let isRunning = false;
  let failedBefore = false;
  let messagesSince = 0;

  const onReply = ({ error }: CheckpointReply): void => {
    isRunning = false;
    if (error !== undefined && !failedBefore) {
      log.warn({ err: error }, 'a checkpoint of the slashing database failed: its log grows until one succeeds');
    }
    failedBefore = error !== undefined;
  };
  const start = (): Worker => {
    const started = new Worker(workerUrl, {
      workerData: data,
      name: 'slashing checkpoints',
      resourceLimits: WORKER_LIMITS,
    });
    started.on('message', onReply);
    started.on('error', (error) =>
      log.warn({ err: error }, 'checkpoints of the slashing database are made by its commits'),
    );
    started.on('exit', () => {
      isOver = true;
    });
    started.unref();
    return started;
  };

  return {
    /** The worker is started by the first messages that are worth a checkpoint. */
    recorded(messages: number): void {
      messagesSince += messages;
      if (messagesSince < MESSAGES || isRunning || isOver) return;
      messagesSince = 0;
      isRunning = true;
      worker ??= start();
      worker.postMessage('checkpoint' satisfies CheckpointRequest);
    },
    async close(waitMs = WORKER_CLOSE_WAIT_MS): Promise<void> {
      const closing = worker;
      if (closing === undefined || isOver) return;
      isOver = true;
      const ended = hasEnded(closing, waitMs, () =>
        log.warn({}, 'a checkpoint of the slashing database does not end: it is given up'),
      );
      closing.postMessage('close' satisfies CheckpointRequest);
      await ended;
    },
  };
}

/** Closing waits so long for a worker, which may hang on its disk, at most. */
export const WORKER_CLOSE_WAIT_MS = 5_000;
/** What SQLite's workers leave behind is garbage: without a bound they keep as much of it as the main thread does. */
export const WORKER_LIMITS = { maxYoungGenerationSizeMb: 6 };

/** Resolves when the worker has exited, or is given up: it is late then, and is told to end at once. */
export function hasEnded(worker: Worker, waitMs: number, onLate: () => void): Promise<void> {
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
  return inTime(ended, Math.min(WORKER_CLOSE_WAIT_MS, waitMs), () => {
    onLate();
    void worker.terminate();
    worker.unref();
  });
}
