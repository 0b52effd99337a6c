// Where lines of a log go: standard output or error, or a file. Written in the background, so that a reader who has
// stopped holds up nothing. It never throws: a program without a log still serves. What cannot be written is dropped
// and counted, and the first line after it says how many are missing.

import { closeSync, constants, openSync, write, writeSync } from 'node:fs';
import { inTime } from '../flow/in-time.ts';

export interface Output {
  /** @returns false when enough waits, and when the lines were dropped */
  write(lines: string): boolean;
  /** Whether the lines that were given last are with the system; false when they were dropped. Writes them now. */
  confirmed(): Promise<boolean>;
  drained(): Promise<void>;
  readonly lostLines: number;
  /** Lines were lost, and the destination has taken nothing since. */
  readonly isLosing: boolean;
  /** Close and open the file again, after a rotation. @throws when it cannot be opened: the old one stays */
  reopen(): void;
  /** At once, and the caller waits: before the process ends for a bug. */
  flush(): void;
  /** What is not written then is given up, and so is what comes later. */
  end(timeoutMs: number): Promise<void>;
}

export interface OutputOptions {
  /** Beyond half of it `write` says false; beyond all of it lines are dropped. */
  readonly maxWaitingBytes: number;
  /** One system call for many lines: a write begins with so many bytes, or after this time. Default: at once. */
  readonly collected?: { readonly bytes: number; readonly milliseconds: number };
  /** How the log says that lines are missing; default: as one of its JSON lines. */
  readonly lostLine?: (lines: number) => string;
}

const MAX_BATCH_BYTES = 64 * 1024;
/** After a write that failed: a full disk, or a reader that is gone. */
const RETRY_MS = 250;
/** Doubled up to RETRY_MS while a reader is slow. */
const FIRST_BUSY_MS = 2;
const FLUSH_TIMEOUT_MS = 1_000;
/** On standard error: at most once in this time. */
const SAY_AGAIN_MS = 60_000;
const STREAMS: Readonly<Record<string, string>> = { stdout: 'standard output', stderr: 'standard error' };
const STANDARD_ERROR = 2;
const LF = 0x0a;

interface Batch {
  text: string;
  bytes: number;
  isWritten: boolean | undefined;
  readonly waiters: ((isWritten: boolean) => void)[];
}

/** What is being written: what is said of missing lines, and a batch. */
interface Write {
  readonly batch: Batch;
  readonly bytes: Buffer;
  readonly ownBytes: number;
  /** Lost lines that this write names. */
  readonly named: number;
  written: number;
}

/** @param target `stdout`, `stderr`, or the absolute path of a file @throws when it cannot be opened */
export function openOutput(target: string, options: OutputOptions): Output {
  const { maxWaitingBytes, collected = { bytes: 0, milliseconds: 0 }, lostLine = lostLinesLine } = options;
  let descriptor = openTarget(target);
  const retired: number[] = [];
  const waiting: Batch[] = [];
  let waitingBytes = 0;
  /** That the last line went into; undefined: it was dropped. */
  let latest: Batch | undefined;
  let underWay: Write | undefined;
  /** Of the system, which has not answered yet. */
  let isWriting = false;
  let timer: NodeJS.Timeout | undefined;
  let isPausing = false;
  let busyMs = FIRST_BUSY_MS;
  let lostLines = 0;
  let namedLines = 0;
  let isMidLine = false;
  let failures = 0;
  let hasEnded = false;
  const waiters = new Set<() => void>();

  const later = (milliseconds: number, run: () => void): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = undefined;
      run();
    }, milliseconds);
  };
  let saidAt = Number.NEGATIVE_INFINITY;
  const lose = (lines: number, why: string): void => {
    lostLines += lines;
    if (performance.now() - saidAt < SAY_AGAIN_MS) return;
    saidAt = performance.now();
    sayOnStandardError(target, why);
  };
  const settled = (batch: Batch, isWritten: boolean): void => {
    waitingBytes -= batch.bytes;
    batch.isWritten = isWritten;
    for (const tell of batch.waiters.splice(0)) tell(isWritten);
    for (const look of waiters) look();
  };
  const pump = (): void => {
    if (underWay !== undefined || isPausing) return;
    const [batch] = waiting;
    const isDue = waiting.length > 1 || (batch !== undefined && (batch.waiters.length > 0 || hasEnded));
    if (isDue || (batch?.bytes ?? 0) >= Math.max(1, collected.bytes) || lostLines > namedLines) begin();
    else if (batch !== undefined && timer === undefined) later(collected.milliseconds, begin);
  };
  const begin = (): void => {
    clearTimeout(timer);
    timer = undefined;
    const batch = waiting.shift() ?? newBatch();
    const missing = lostLines > namedLines ? lostLine(lostLines - namedLines) : '';
    const own = `${isMidLine ? '\n' : ''}${missing}`; // a line that was cut is ended
    const bytes = Buffer.from(own + batch.text);
    underWay = { batch, bytes, ownBytes: Buffer.byteLength(own), named: lostLines, written: 0 };
    writeRest(underWay);
  };
  const writeRest = (one: Write): void => {
    const { bytes, written } = one;
    isWriting = true;
    write(descriptor, bytes, written, bytes.length - written, null, (error, count) => {
      isWriting = false;
      closeRetired();
      if (error !== null && isBusy(error)) {
        later(busyMs, () => writeRest(one));
        busyMs = Math.min(2 * busyMs, RETRY_MS);
        if (hasEnded) timer?.unref();
        return;
      }
      busyMs = FIRST_BUSY_MS;
      if (error !== null) return void failed(one, error);
      one.written += count;
      if (one.written < bytes.length) writeRest(one);
      else succeeded(one);
    });
  };
  const succeeded = (one: Write): void => {
    underWay = undefined;
    isMidLine = false;
    namedLines = one.named;
    settled(one.batch, true);
    pump();
  };
  const failed = (one: Write, error: NodeJS.ErrnoException): void => {
    const { bytes, ownBytes, written } = one;
    underWay = undefined;
    failures += 1;
    if (written > 0) isMidLine = bytes[written - 1] !== LF;
    const lost = linesIn(bytes.subarray(Math.max(written, ownBytes)));
    lose(lost, `cannot be written (${error.code ?? error.message})`);
    if (ownBytes > 0 && written >= ownBytes) namedLines = one.named;
    isPausing = true;
    later(RETRY_MS, retry);
    timer?.unref(); // a log that cannot be written keeps no process alive
    settled(one.batch, false);
  };
  const retry = (): void => {
    isPausing = false;
    if (lostLines > namedLines || isMidLine) begin();
    else pump();
  };
  const closeRetired = (): void => {
    for (const old of retired.splice(0)) closeSync(old);
  };
  const until = async (isOver: () => boolean): Promise<void> => {
    if (isOver()) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (!isOver()) return;
      waiters.delete(look);
      resolve();
    };
    waiters.add(look);
    await promise;
  };

  return {
    get lostLines() {
      return lostLines;
    },
    get isLosing() {
      return lostLines > namedLines;
    },
    write(lines) {
      if (hasEnded) return false;
      const bytes = Buffer.byteLength(lines);
      if (waitingBytes + bytes > maxWaitingBytes) {
        latest = undefined;
        lose(linesIn(Buffer.from(lines)), 'is not read');
        return false;
      }
      let batch = waiting.at(-1);
      if (batch === undefined || batch.bytes + bytes > MAX_BATCH_BYTES) {
        batch = newBatch();
        waiting.push(batch);
      }
      batch.text += lines;
      batch.bytes += bytes;
      waitingBytes += bytes;
      latest = batch;
      pump();
      return waitingBytes < maxWaitingBytes / 2;
    },
    confirmed() {
      const batch = latest;
      if (batch?.isWritten !== undefined || batch === undefined) return Promise.resolve(batch?.isWritten ?? false);
      const { promise, resolve } = Promise.withResolvers<boolean>();
      batch.waiters.push(resolve);
      pump();
      return promise;
    },
    drained: () => until(() => waitingBytes < maxWaitingBytes / 2),
    reopen() {
      if (target in STREAMS) return;
      const next = openTarget(target);
      if (isWriting)
        retired.push(descriptor); // its write goes to its end
      else closeSync(descriptor);
      descriptor = next;
    },
    flush() {
      const until = performance.now() + FLUSH_TIMEOUT_MS;
      if (isPausing) return; // the last write failed
      const rest = isWriting ? undefined : underWay?.bytes.subarray(underWay.written);
      const texts = waiting.map(({ text }) => text).join('');
      writeBlocking(descriptor, Buffer.concat([rest ?? Buffer.alloc(0), Buffer.from(texts)]), until);
    },
    async end(timeoutMs) {
      hasEnded = true;
      const failedBefore = failures;
      if (isPausing) {
        clearTimeout(timer);
        isPausing = false;
      }
      pump();
      const isOver = () => waitingBytes === 0 || failures > failedBefore;
      await inTime(until(isOver), timeoutMs, () => undefined);
      clearTimeout(timer);
      if (!(target in STREAMS) && !isWriting) closeSync(descriptor);
    },
  };
}

function newBatch(): Batch {
  return { text: '', bytes: 0, isWritten: undefined, waiters: [] };
}

/** A stream as Node.js opens it, and a pipe, never wait in a thread for a reader: the process could not end. */
function openTarget(target: string): number {
  if (target === 'stdout' || target === 'stderr') return process[target].fd;
  const { O_APPEND, O_CREAT, O_NONBLOCK, O_WRONLY } = constants;
  return openSync(target, O_APPEND | O_CREAT | O_NONBLOCK | O_WRONLY, 0o640);
}

function isBusy({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EAGAIN' || code === 'EBUSY';
}

function linesIn(bytes: Buffer): number {
  let lines = 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) lines += 1;
  return lines;
}

/** In the background, too: its reader may be the same. */
function sayOnStandardError(target: string, why: string): void {
  const name = target in STREAMS ? `${STREAMS[target]}, the log,` : `the log ${target}`;
  write(
    STANDARD_ERROR,
    `strongroom: ${name} ${why}: its lines are dropped and counted until it takes them again\n`,
    () => undefined,
  );
}

function writeBlocking(descriptor: number, bytes: Buffer, until: number): void {
  for (let written = 0; written < bytes.length && performance.now() < until; ) {
    try {
      written += writeSync(descriptor, bytes, written);
    } catch (error) {
      if (!(error instanceof Error && isBusy(error))) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FIRST_BUSY_MS);
    }
  }
}

/** As one of the log's own lines. */
export function lostLinesLine(lines: number): string {
  const line = {
    level: 'warn',
    time: new Date().toISOString(),
    module: 'server',
    lines,
    msg: 'log lines were dropped',
  };
  return `${JSON.stringify(line)}\n`;
}
