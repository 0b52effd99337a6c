// How long a process was ready to run and had no core to run on: on a machine with more to do than cores a guest gets
// further in the same time when that is not counted against it.

import { readdirSync, readFileSync } from 'node:fs';

/** No limit is stretched to more than so many times its length. */
const MAX_STRETCH = 4;

/** What counts of the elapsed time against a limit. */
export function countedMs(elapsedMs: number, waitedMs: number): number {
  return Math.max(elapsedMs - waitedMs, elapsedMs / MAX_STRETCH);
}

/**
 * @returns milliseconds, of the thread that waited longest; 0 where the kernel does not count it, and for a process
 * that is gone
 */
export function waitedForCoreMs(pid: number | undefined): number {
  try {
    const threads = readdirSync(`/proc/${pid}/task`);
    return Math.max(0, ...threads.map((thread) => waitOf(`/proc/${pid}/task/${thread}/schedstat`)));
  } catch {
    return 0;
  }
}

/** Second of three numbers, in nanoseconds (Linux, Documentation/scheduler/sched-stats). */
function waitOf(path: string): number {
  try {
    return Number(readFileSync(path, 'utf8').split(' ')[1] ?? 0) / 1e6;
  } catch {
    return 0; // the thread has ended
  }
}
