// The log's way out: lines wait in a bounded ring for the parent. Writing never waits: the oldest lines are dropped and
// counted.

import type { Socket } from 'node:net';
import { jittered } from '../../common/flow/backoff.ts';
import { lostLinesLine } from '../../common/observe/output.ts';
import { LOG_PORT } from '../../signer/api/parent-ports.ts';
import type { Transport } from '../../signer/native/transport.ts';

export interface LogRingLimits {
  readonly maxBytes: number;
  readonly maxLines: number;
  readonly maxLineBytes: number;
  readonly batchMs: number;
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
  /** A parent that takes nothing for this long is given up. */
  readonly stalledMs: number;
}

export const LOG_RING_LIMITS: LogRingLimits = {
  maxBytes: 8 * 1024 * 1024,
  maxLines: 32_768,
  maxLineBytes: 64 * 1024,
  batchMs: 20,
  firstPauseMs: 100,
  maxPauseMs: 5_000,
  stalledMs: 10_000,
};

const CONNECT_TIMEOUT_MS = 3_000;
const CHUNK_BYTES = 64 * 1024;
/** For the parent to read to the end. */
const FAREWELL_MS = 500;

export class LogRing {
  readonly #parent: Transport;
  readonly #limits: LogRingLimits;
  readonly #waiting: LineQueue;
  #inFlight: readonly string[] = [];
  #dropped = 0;
  #announced = 0;
  #socket: Socket | undefined;
  #state: 'idle' | 'pausing' | 'connecting' | 'ready' | 'sending' | 'closed' = 'idle';
  #timer: NodeJS.Timeout | undefined;
  #pauseMs: number;
  #onChunkSent = (): void => undefined;

  constructor(parent: Transport, limits: LogRingLimits = LOG_RING_LIMITS) {
    this.#parent = parent;
    this.#limits = limits;
    this.#waiting = new LineQueue(limits.maxLines);
    this.#pauseMs = limits.firstPauseMs;
  }

  write(line: string): void {
    if (Buffer.byteLength(line) > this.#limits.maxLineBytes || this.#state === 'closed') {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(line);
    while (this.#waiting.bytes > this.#limits.maxBytes || this.#waiting.length > this.#limits.maxLines) {
      this.#waiting.take();
      this.#dropped += 1;
    }
    if (this.#state === 'idle') void this.#connect();
    else if (this.#state === 'ready' && this.#timer === undefined)
      this.#later(this.#limits.batchMs, () => this.#send());
  }

  droppedLines(): number {
    return this.#dropped;
  }

  isLosing(): boolean {
    return this.#dropped > this.#announced;
  }

  /** For a process that ends in this moment. */
  flush(): void {
    const socket = this.#socket;
    if (socket === undefined) return;
    while (this.#waiting.length > 0) socket.write(this.#waiting.take());
  }

  /** What the parent has not taken within the time is lost. */
  async end(timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    this.#onChunkSent = () => {
      if (this.#isDrained()) resolve();
    };
    this.#onChunkSent();
    if (this.#state === 'ready') this.#send();
    if (this.#state === 'pausing') void this.#connect(); // at once: `end` waits no longer than its time
    await promise;
    clearTimeout(timer);
    await this.#close();
  }

  async #close(): Promise<void> {
    const socket = this.#socket;
    const drained = this.#isDrained();
    this.#state = 'closed';
    this.#socket = undefined;
    this.#clearTimer();
    if (socket !== undefined && drained) {
      const { promise: over, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, FAREWELL_MS); // nothing else may keep the process alive until then
      socket.once('close', () => resolve());
      socket.end();
      await over;
      clearTimeout(timer);
    }
    socket?.destroy();
  }

  async #connect(): Promise<void> {
    this.#clearTimer();
    this.#state = 'connecting';
    try {
      const socket = await this.#parent.connect(LOG_PORT, { timeoutMs: CONNECT_TIMEOUT_MS });
      if (this.#isClosed()) {
        socket.destroy();
        return;
      }
      this.#adopt(socket);
    } catch {
      this.#broken(undefined); // the parent does not listen: the lines wait in the ring
    }
  }

  #adopt(socket: Socket): void {
    this.#socket = socket;
    this.#state = 'ready';
    socket.unref(); // the log keeps no process alive
    socket.on('error', () => undefined); // 'close' follows
    socket.once('close', () => this.#broken(socket));
    socket.once('end', () => socket.destroy());
    socket.once('data', () => socket.destroy()); // the parent has nothing to say here
    this.#send();
  }

  #send(): void {
    this.#clearTimer();
    const socket = this.#socket;
    if (socket === undefined || this.#state !== 'ready' || this.#isDrained()) return;
    this.#state = 'sending';
    if (this.#inFlight.length === 0) this.#inFlight = this.#nextChunk();
    this.#later(this.#limits.stalledMs, () => socket.destroy());
    socket.write(this.#inFlight.join(''), (error) => {
      if (error || this.#socket !== socket || this.#state !== 'sending') return; // 'close' follows, or was there
      this.#clearTimer();
      this.#inFlight = [];
      this.#pauseMs = this.#limits.firstPauseMs; // it takes lines again
      this.#state = 'ready';
      this.#onChunkSent();
      if (!this.#isDrained()) this.#later(0, () => this.#send());
    });
  }

  /** Begins with what was lost before it. */
  #nextChunk(): readonly string[] {
    const chunk: string[] = [];
    if (this.#dropped > this.#announced) chunk.push(lostLinesLine(this.#dropped - this.#announced));
    this.#announced = this.#dropped;
    for (let bytes = 0; bytes < CHUNK_BYTES && this.#waiting.length > 0; ) {
      const line = this.#waiting.take();
      bytes += Buffer.byteLength(line);
      chunk.push(line);
    }
    return chunk;
  }

  #broken(socket: Socket | undefined): void {
    if (this.#isClosed() || this.#socket !== socket) return;
    this.#socket = undefined;
    this.#state = 'pausing';
    this.#later(jittered(this.#pauseMs), () => {
      this.#state = 'idle';
      if (!this.#isDrained()) void this.#connect();
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, this.#limits.maxPauseMs);
  }

  #isDrained(): boolean {
    return this.#waiting.length === 0 && this.#inFlight.length === 0;
  }

  #isClosed(): boolean {
    return this.#state === 'closed';
  }

  #later(delayMs: number, run: () => void): void {
    this.#clearTimer();
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      run();
    }, delayMs);
    this.#timer.unref();
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Lines that wait for the parent, first in, first out: taking one does not move the others. */
class LineQueue {
  readonly #compactAfter: number;
  #lines: string[] = [];
  #first = 0;
  #bytes = 0;

  constructor(compactAfter: number) {
    this.#compactAfter = compactAfter;
  }

  get length(): number {
    return this.#lines.length - this.#first;
  }

  get bytes(): number {
    return this.#bytes;
  }

  push(line: string): void {
    this.#lines.push(line);
    this.#bytes += Buffer.byteLength(line);
  }

  take(): string {
    const line = this.#lines[this.#first] ?? '';
    this.#lines[this.#first] = '';
    this.#first += 1;
    this.#bytes -= Buffer.byteLength(line);
    if (this.#first >= this.#compactAfter || this.#first === this.#lines.length) {
      this.#lines = this.#lines.slice(this.#first);
      this.#first = 0;
    }
    return line;
  }
}
