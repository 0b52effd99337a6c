// Where lines go: standard output, or a file. Written in the background, so that a reader who has stopped holds up no
// connection. It never throws: a proxy without a log still proxies.

import { closeSync, openSync, write } from 'node:fs';

export interface Output {
  write(lines: string): boolean;
  drained(): Promise<void>;
  /** Lines of writes that were refused or failed. */
  readonly lostWrites: number;
  /** Close and open the file again, after a rotation. @throws when it cannot be opened: the old one stays */
  reopen(): void;
  end(timeoutMs: number): Promise<void>;
}

/** Beyond it `write` says false; beyond twice as much, lines are lost and counted. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const MAX_BATCH_WRITES = 512;
/** After a write that failed: a full disk, or a reader that is gone. */
const RETRY_MS = 250;
const STANDARD_OUTPUT = 1;

/** @param target `stdout`, or the absolute path of a file @throws when it cannot be opened */
export function openOutput(target: string): Output {
  let descriptor = openTarget(target);
  let waiting: string[] = [];
  let waitingBytes = 0;
  let lostWrites = 0;
  let writing = false;
  const retired: number[] = [];
  let waiters: { readonly belowBytes: number; readonly resolve: () => void }[] = [];

  const settle = (bytes: number): void => {
    waitingBytes -= bytes;
    writing = false;
    for (const old of retired.splice(0)) closeSync(old);
    const ready = waiters.filter(({ belowBytes }) => waitingBytes < belowBytes);
    waiters = waiters.filter((waiter) => !ready.includes(waiter));
    for (const { resolve } of ready) resolve();
    pump();
  };
  const below = async (belowBytes: number): Promise<void> => {
    if (waitingBytes < belowBytes) return;
    await new Promise<void>((resolve) => void waiters.push({ belowBytes, resolve }));
  };
  const pump = (): void => {
    if (writing || waiting.length === 0) return;
    writing = true;
    const batch = waiting.slice(0, MAX_BATCH_WRITES);
    waiting = waiting.slice(MAX_BATCH_WRITES);
    const bytes = Buffer.from(batch.join(''));
    writeAll(descriptor, bytes, (error) => {
      if (error === null) {
        settle(bytes.length);
        return;
      }
      lostWrites += batch.length;
      setTimeout(() => settle(bytes.length), RETRY_MS);
    });
  };

  return {
    get lostWrites() {
      return lostWrites;
    },
    write(lines) {
      const bytes = Buffer.byteLength(lines);
      if (waitingBytes + bytes > 2 * MAX_WAITING_BYTES) {
        lostWrites += 1;
        return false;
      }
      waiting.push(lines);
      waitingBytes += bytes;
      pump();
      return waitingBytes < MAX_WAITING_BYTES;
    },
    drained: () => below(MAX_WAITING_BYTES),
    reopen() {
      if (target === 'stdout') return;
      const next = openTarget(target);
      if (writing)
        retired.push(descriptor); // its write goes to its end
      else closeSync(descriptor);
      descriptor = next;
    },
    async end(timeoutMs) {
      const { promise: timeUp, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, timeoutMs);
      await Promise.race([below(1), timeUp]);
      clearTimeout(timer);
      if (target !== 'stdout' && !writing) closeSync(descriptor);
    },
  };
}

function openTarget(target: string): number {
  return target === 'stdout' ? STANDARD_OUTPUT : openSync(target, 'a', 0o640);
}

function writeAll(descriptor: number, bytes: Buffer, done: (error: Error | null) => void): void {
  write(descriptor, bytes, 0, bytes.length, null, (error, written) => {
    if (error !== null && error.code === 'EAGAIN') setTimeout(() => writeAll(descriptor, bytes, done), RETRY_MS);
    else if (error !== null) done(error);
    else if (written < bytes.length) writeAll(descriptor, bytes.subarray(written), done);
    else done(null);
  });
}
