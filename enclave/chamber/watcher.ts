// Keeps sight of the state table: latch, generation and auth revision, read consistently every interval. Seals when the
// latch is there, has the auth state read again when its revision moved, and says `stale` when nothing complete was read
// for too long. Time comes from the injected clock, so a process that was stopped is stale the moment it goes on.

import { strict as assert } from 'node:assert';
import type { Clock } from '../observe/clock.ts';
import type { Log } from '../observe/log.ts';
import type { SealOverride } from './state-rows.ts';
import type { StateTable } from './state-table.ts';

/** decisions.md section 6: no successful read for max(5 intervals, 10 s) is stale. */
const STALE_INTERVALS = 5;
const STALE_AT_LEAST_SECONDS = 10;
/** The first pause after a failed read; doubled with each further one, never longer than the interval. */
const FIRST_BACKOFF_MS = 50;

export interface WatcherOptions {
  /** `signer_state.refresh_interval_seconds`, above 0. */
  readonly intervalSeconds: number;
  /** Of the MASTER_KEY row that this replica was unsealed from. */
  readonly generation: number;
  /** The auth revision that is loaded. */
  readonly authRevision: number;
}

export interface WatcherParts {
  readonly table: Pick<StateTable, 'watch'>;
  readonly onLatch: (latch: SealOverride) => void;
  /** Read the auth state again; the poll counts as failed when this throws. */
  readonly onAuthRevision: (revision: number) => Promise<void>;
  readonly clock: Clock;
  readonly log: Log;
}

export class Watcher {
  readonly #options: WatcherOptions;
  readonly #parts: WatcherParts;
  #lastSuccessAt: number;
  #authRevision: number;
  #generation: number | undefined;
  #failures = 0;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  /** The boot has just read everything: that counts as the first success. */
  constructor(options: WatcherOptions, parts: WatcherParts) {
    assert(options.intervalSeconds > 0);
    this.#options = options;
    this.#parts = parts;
    this.#lastSuccessAt = parts.clock.monotonic();
    this.#authRevision = options.authRevision;
    this.#generation = options.generation;
  }

  /** Seconds since the beginning of the last complete read. */
  ageSeconds(): number {
    return (this.#parts.clock.monotonic() - this.#lastSuccessAt) / 1000;
  }

  get stale(): boolean {
    return this.ageSeconds() > Math.max(STALE_INTERVALS * this.#options.intervalSeconds, STALE_AT_LEAST_SECONDS);
  }

  /** Read now, and then every interval until `stop`. */
  start(): void {
    const turn = async (): Promise<void> => {
      await this.poll();
      if (this.#stopped) return;
      this.#timer = setTimeout(() => void turn(), this.#pauseMs());
      this.#timer.unref();
    };
    void turn();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** One read and what follows from it. Never rejects. */
  async poll(): Promise<void> {
    const startedAt = this.#parts.clock.monotonic();
    try {
      await this.#look();
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#failures > 0) this.#parts.log.info({ failures: this.#failures }, 'the state table is in sight again');
    this.#failures = 0;
    this.#lastSuccessAt = startedAt;
  }

  async #look(): Promise<void> {
    const { sealOverride, generation, authRevision } = await this.#parts.table.watch();
    if (this.#stopped) return;
    if (sealOverride !== undefined) {
      this.stop();
      this.#parts.onLatch(sealOverride);
      return;
    }
    this.#noteGeneration(generation);
    if (authRevision === this.#authRevision) return;
    if (authRevision === undefined) throw new Error('the row AUTH_REVISION is gone');
    await this.#parts.onAuthRevision(authRevision);
    this.#authRevision = authRevision;
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
    this.#failures += 1;
    const detail = (error as { detail?: unknown }).detail;
    const message = error instanceof Error ? error.message : String(error);
    this.#parts.log.warn(
      { failures: this.#failures, age_seconds: this.ageSeconds(), error: message, detail },
      'the state table could not be read',
    );
  }

  /** Jitter keeps replicas that started together from reading together. */
  #pauseMs(): number {
    const intervalMs = this.#options.intervalSeconds * 1000;
    if (this.#failures === 0) return intervalMs * (0.9 + Math.random() / 10);
    const backoffMs = Math.min(intervalMs, FIRST_BACKOFF_MS * 2 ** Math.min(this.#failures - 1, 20));
    return backoffMs * (0.5 + Math.random() / 2);
  }
}
