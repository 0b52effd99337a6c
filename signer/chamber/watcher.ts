// Watches the state table: latch, generation and auth head, read consistently in every interval. Time comes from the
// injected clock, so a process that was stopped is stale as soon as it continues.

import { strict as assert } from 'node:assert';
import { backoffMs, jitteredInterval } from '../../common/flow/backoff.ts';
import type { Clock } from '../../common/observe/clock.ts';
import { type Log, toMilli } from '../../common/observe/log.ts';
import type { AuthHead } from '../auth/stateful/state.ts';
import type { Latch } from './state-rows.ts';
import type { StateTable } from './state-table.ts';

/** specification/custody.md#watching: no successful read for max(5 intervals, 10 s) is stale. */
const STALE_INTERVALS = 5;
const STALE_AT_LEAST_SECONDS = 10;
/** The first pause after a failed read; doubled with each further one, never longer than the interval. */
const FIRST_BACKOFF_MS = 50;

/** How long a signer may go on without having seen the state table. @param intervalSeconds 0 when nothing is watched */
export function stalenessBoundSeconds(intervalSeconds: number): number {
  return Math.max(STALE_INTERVALS * intervalSeconds, STALE_AT_LEAST_SECONDS);
}

interface WatcherOptions {
  readonly intervalSeconds: number;
  readonly generation: number;
  /** By the monotonic clock: when the start began to read the table. */
  readonly readAt: number;
}

export type WatchedHead = Pick<AuthHead, 'revision' | 'mac'>;

export interface WatcherParts {
  readonly table: Pick<StateTable, 'watch'>;
  readonly onLatch: (latch: Latch) => void;
  readonly auth: {
    head(): WatchedHead | undefined;
    refresh(): Promise<void>;
  };
  readonly clock: Clock;
  readonly log: Log;
}

export class Watcher {
  readonly #options: WatcherOptions;
  readonly #parts: WatcherParts;
  #lastSuccessAt: number;
  #generation: number | undefined;
  #catchingUp: Promise<void> | undefined;
  #failures = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: WatcherOptions, parts: WatcherParts) {
    assert(options.intervalSeconds > 0);
    this.#options = options;
    this.#parts = parts;
    this.#lastSuccessAt = options.readAt;
    this.#generation = options.generation;
  }

  ageSeconds(): number {
    return (this.#parts.clock.monotonic() - this.#lastSuccessAt) / 1000;
  }

  get stale(): boolean {
    return this.ageSeconds() > stalenessBoundSeconds(this.#options.intervalSeconds);
  }

  async start(): Promise<void> {
    await this.poll();
    this.#lookLater();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async poll(): Promise<void> {
    await this.look();
    await this.#catchingUp;
  }

  /** The next look at the latch does not wait for the auth state that is read again. */
  async look(): Promise<void> {
    const startedAt = this.#parts.clock.monotonic();
    try {
      const rows = await this.#parts.table.watch();
      if (this.#stopped) return;
      if (rows.latch !== undefined) {
        this.stop();
        this.#parts.onLatch(rows.latch);
        return;
      }
      this.#noteGeneration(rows.generation);
      if (rows.authHead === undefined) throw new Error('the row AUTH_REVISION is gone');
      if (this.#isHeld(rows.authHead)) this.#succeed(startedAt);
      else this.#catchUp(startedAt);
    } catch (error) {
      this.#fail(error);
    }
  }

  #lookLater(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.look().then(() => this.#lookLater()), this.#pauseMs());
    this.#timer.unref();
  }

  /** With what is held, not with what was seen last: between two looks the table may move and go back. */
  #isHeld({ revision, mac }: WatchedHead): boolean {
    const held = this.#parts.auth.head();
    return held?.revision === revision && Buffer.compare(held.mac, mac) === 0;
  }

  #catchUp(startedAt: number): void {
    this.#catchingUp ??= this.#parts.auth
      .refresh()
      .then(
        () => this.#succeed(startedAt),
        (error: unknown) => this.#fail(error),
      )
      .finally(() => {
        this.#catchingUp = undefined;
      });
  }

  #succeed(startedAt: number): void {
    if (this.#failures > 0) this.#parts.log.info({ failures: this.#failures }, 'the state table is in sight again');
    this.#failures = 0;
    this.#lastSuccessAt = Math.max(startedAt, this.#lastSuccessAt);
  }

  /** Nothing follows from it: the master key stays the same in every generation. */
  #noteGeneration(generation: number | undefined): void {
    if (generation === this.#generation) return;
    const { log } = this.#parts;
    if (generation === undefined) {
      log.error({}, 'the row MASTER_KEY is gone: no replica can start again until it is restored from a backup');
    } else {
      log.info({ generation, was: this.#generation ?? null }, 'the MASTER_KEY row is of another generation now');
    }
    this.#generation = generation;
  }

  #fail(error: unknown): void {
    if (this.#stopped) return;
    this.#failures += 1;
    const detail = (error as { detail?: unknown }).detail;
    const message = error instanceof Error ? error.message : String(error);
    this.#parts.log.warn(
      { failures: this.#failures, age_seconds: toMilli(this.ageSeconds()), error: message, detail },
      'the state table could not be read',
    );
  }

  #pauseMs(): number {
    const intervalMs = this.#options.intervalSeconds * 1000;
    if (this.#failures === 0) return jitteredInterval(intervalMs);
    return backoffMs(this.#failures, { firstMs: FIRST_BACKOFF_MS, mostMs: intervalMs });
  }
}
