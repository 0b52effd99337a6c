// Slashing protection as the signing path sees it: one call that answers safe or refused, or throws. It groups
// concurrent requests into batches for the backend, keeps the order of each key, and remembers what this process has
// signed. It trusts only plain answers of a backend: a failed, short or unknown answer is a doubt, and the signer
// answers a doubt with 503.

import { strict as assert } from 'node:assert';
import type { Clock } from '../../observe/clock.ts';
import type { Log } from '../../observe/log.ts';
import { SignerError } from '../api/errors.ts';
import { type BatchPace, batchPace } from './batch-pace.ts';
import { type AnswerHooks, answerCheck, callHook } from './check-answers.ts';
import { checkQueue, type WaitingCheck } from './check-queue.ts';
import { signingMemory } from './doubts.ts';
import { type GroupCheckOutcome, waitForGroup } from './group-checks.ts';
import type { Decision } from './history/rules.ts';
import { type SlashingHealth, StoreHealth } from './store-health.ts';
import type { SlashableMessage, SlashingBackend, Verdict } from './types.ts';

/** Requests that wait for their batch, at most; the next one is `overloaded`. */
const MAX_QUEUED_CHECKS = 16_384;
/**
 * Closing waits so long for the batches under way, at most; then the store is closed, and what it has not answered is
 * 503.
 */
export const BATCHES_CLOSE_WAIT_MS = 10_000;

export interface SlashingProtectionOptions extends AnswerHooks {
  readonly maxQueuedChecks?: number;
  /** After each batch: how many messages, how long it took, and whether its commit succeeded. */
  readonly onBatch?: (size: number, seconds: number, outcome: 'committed' | 'failed') => void;
  /** The store is left alone: nothing can be said of its health. */
  readonly unopened?: boolean;
}

export class SlashingProtection {
  readonly backend: SlashingBackend;
  readonly #options: SlashingProtectionOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #memory = signingMemory();

  readonly #queue = checkQueue();
  readonly #batches = new Set<Promise<void>>();

  readonly #pace: BatchPace;
  #wakeUp: NodeJS.Timeout | undefined;
  #turnScheduled = false;
  #closed = false;
  readonly #health: StoreHealth;

  constructor(
    backend: SlashingBackend,
    options: SlashingProtectionOptions,
    { clock, log }: { clock: Clock; log: Log },
  ) {
    this.backend = backend;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#pace = batchPace(this.#queue, backend, clock);
    this.#health = new StoreHealth(backend, options.unopened === true, { clock, log });
  }

  get health(): SlashingHealth {
    return this.#health.now;
  }

  get load(): { readonly queued: number; readonly inFlight: number } {
    return { queued: this.#queue.size, inFlight: this.#queue.busy };
  }

  /**
   * Check one message and record it. When the promise resolves with `safe` the record is durable.
   * A signal that aborts before the check has begun frees its place; later it has no effect.
   * @throws SignerError overloaded, shutting_down, slashing_unavailable, slashing_integrity, slashing_rollback;
   *         the signal's reason when it aborts first
   */
  check(message: SlashableMessage, signal?: AbortSignal): Promise<Decision> {
    const refusal = this.#entryRefusal(1, signal);
    if (refusal !== undefined) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        this.#queue.remove(check);
        reject(signal?.reason);
      };
      const detach = () => signal?.removeEventListener('abort', giveUp);
      const check: WaitingCheck = { message, yields: false, resolve, reject, detach };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#queue.add(check);
      this.#pace.singleCame();
      this.#scheduleTurn();
    });
  }

  /**
   * Check and record messages of different keys, each as `check` does; they share their commits with each other and
   * with whatever else comes, and single messages overtake them. Resolves when all are decided, in the order
   * of the messages.
   * @throws as `check` does before anything is decided: overloaded, shutting_down, the signal's reason
   */
  checkGroup(messages: readonly SlashableMessage[], signal: AbortSignal): Promise<readonly GroupCheckOutcome[]> {
    const refusal = this.#entryRefusal(messages.length, signal);
    if (refusal !== undefined) return Promise.reject(refusal);
    const outcomes = waitForGroup(messages, signal, this.#queue);
    this.#scheduleTurn();
    return outcomes;
  }

  /** Ask the store now; resolves with the new health and never rejects. */
  checkHealth(signal: AbortSignal): Promise<SlashingHealth> {
    return this.#health.ask(signal);
  }

  /**
   * Queued checks are refused, batches under way finish if they do so in time, then the backend is closed.
   * @param waitMs for all of it; half of it at most for the batches
   */
  async close(waitMs = 2 * BATCHES_CLOSE_WAIT_MS): Promise<void> {
    const until = this.#clock.monotonic() + waitMs;
    this.#closed = true;
    clearTimeout(this.#wakeUp);
    for (const check of this.#queue.drain()) {
      check.detach();
      check.reject(new SignerError('shutting_down'));
    }
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(
      () => {
        this.#log.error({ batches: this.#batches.size }, 'the slashing store does not answer: it is closed');
        late.resolve();
      },
      Math.min(BATCHES_CLOSE_WAIT_MS, waitMs / 2),
    );
    await Promise.race([Promise.all(this.#batches), late.promise]);
    clearTimeout(timer);
    await this.backend.close(Math.max(0, until - this.#clock.monotonic()));
  }

  #entryRefusal(checks: number, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted === true) return signal.reason;
    if (this.#closed) return new SignerError('shutting_down');
    const limit = this.#options.maxQueuedChecks ?? MAX_QUEUED_CHECKS;
    return this.#queue.size + checks > limit ? new SignerError('overloaded') : undefined;
  }

  /** Once per turn of the event loop, so that requests which arrive together share a batch. No timer is involved. */
  #scheduleTurn(): void {
    if (this.#turnScheduled) return;
    this.#turnScheduled = true;
    setImmediate(() => {
      this.#turnScheduled = false;
      this.#startBatches();
    });
  }

  #startBatches(): void {
    const { maxInFlight } = this.backend.batchLimits;
    while (this.#queue.takeable > 0 && this.#batches.size < maxInFlight) {
      const milliseconds = this.#pace.pauseMilliseconds(this.#batches.size);
      if (milliseconds > 0) {
        this.#wakeUp ??= setTimeout(() => {
          this.#wakeUp = undefined;
          this.#startBatches();
        }, Math.ceil(milliseconds));
        return;
      }
      const checks = this.#takeBatch();
      if (checks.length > 0) this.#start(checks);
    }
  }

  /** The next checks. Those that may not reach the store, or that a failed commit put in doubt, are answered here. */
  #takeBatch(): WaitingCheck[] {
    const all = this.backend.batchLimits.maxMessages;
    return this.#queue.take({ all, yielding: this.#pace.mostYielding() }).filter((check) => {
      check.detach();
      const fault = this.#faultOf(check.message);
      if (fault === undefined) return true;
      this.#queue.release(check.message.publicKey);
      check.reject(fault);
      return false;
    });
  }

  /** What keeps a check from reaching the store. */
  #faultOf(message: SlashableMessage): SignerError | undefined {
    const hindrance = this.#options.hindrance?.();
    if (hindrance !== undefined) return new SignerError(hindrance);
    if (!this.#memory.isInDoubt(message)) return undefined;
    return new SignerError('slashing_unavailable', { detail: { doubt: 'an earlier commit of this key failed' } });
  }

  #start(checks: readonly WaitingCheck[]): void {
    this.#pace.began(checks);
    const batch: Promise<void> = this.#run(checks).finally(() => {
      this.#batches.delete(batch);
      for (const { message } of checks) this.#queue.release(message.publicKey);
      this.#startBatches();
    });
    this.#batches.add(batch);
  }

  async #run(checks: readonly WaitingCheck[]): Promise<void> {
    const started = this.#clock.monotonic();
    const messages = checks.map(({ message }) => message);
    const floors = messages.map(({ publicKey }) => this.#memory.floors(publicKey));
    let verdicts: readonly Verdict[] = [];
    let failure: unknown;
    try {
      verdicts = await this.backend.checkAndRecord(messages, floors);
      assert.equal(verdicts.length, messages.length, 'one verdict for each message');
    } catch (error) {
      failure = error ?? new Error('the backend rejected without a reason');
    }
    // The memory first: whoever reads the answers must find it up to date.
    let place = 0;
    for (const { message } of checks) this.#remember(message, failure, verdicts[place++]);
    this.#health.heard(failure === undefined ? 'up' : 'down', failure);
    const seconds = (this.#clock.monotonic() - started) / 1000;
    const outcome = failure === undefined ? 'committed' : 'failed';
    callHook(() => this.#options.onBatch?.(checks.length, seconds, outcome), this.#log);
    place = 0;
    const told = { hooks: this.#options, log: this.#log };
    for (const check of checks) answerCheck(check, { failure, verdict: verdicts[place++] }, told);
  }

  #remember(message: SlashableMessage, failure: unknown, verdict: Verdict | undefined): void {
    if (failure !== undefined) this.#memory.attempted(message);
    else if (verdict?.kind === 'safe') this.#memory.recorded(message);
  }
}
