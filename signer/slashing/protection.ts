// Slashing protection as the signing path sees it. It groups concurrent requests into batches for the backend and
// remembers what this process has signed. It trusts only plain answers of a backend: a failed, short or unknown answer
// is a doubt, and the signer answers a doubt with 503.

import { strict as assert } from 'node:assert';
import { inTime } from '../../common/flow/in-time.ts';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../api/errors.ts';
import { checkQueue, type GroupCheckOutcome, type WaitingCheck, waitForGroup } from './check-queue.ts';
import { type AheadKeys, aheadKeys, sayAhead } from './future.ts';
import { higherMarks, NO_MARKS } from './history/head.ts';
import { type Decision, isRolledBack } from './history/rules.ts';
import { signingMemory } from './memory.ts';
import { batchPace } from './pace.ts';
import type { Hindrance, RestrainedStore } from './restraints.ts';
import { type SlashingHealth, storeHealth } from './store-health.ts';
import type {
  KeyFault,
  KeyMarks,
  PublicKeyHex,
  SlashableMessage,
  SlashingRefusal,
  SlashingVerdict,
  StoreFloor,
} from './types.ts';

/** At once, when the store is closed. */
const KEYS_LOOKED_AT = 4_096;
/** The next one is `overloaded`. */
const MAX_QUEUED_CHECKS = 16_384;
/** Checks that the store has not answered then are 503. */
export const BATCHES_CLOSE_WAIT_MS = 10_000;
/** Every record lies beyond it. */
const NOTHING_SIGNED: StoreFloor = { slot: -1, sourceEpoch: -1, targetEpoch: -1 };

export interface SlashingProtectionOptions {
  /** The right to sign (sign/right.ts); the right to the store alone unless given. */
  readonly right?: Hindrance;
  readonly maxQueuedChecks?: number;
  readonly onRefusal?: (reason: SlashingRefusal | KeyFault) => void;
  readonly onBatch?: (size: number, seconds: number, outcome: 'committed' | 'failed') => void;
  readonly unopened?: boolean;
  /** The latest that is signed; undefined where nothing can be ahead of the clock. */
  readonly latest?: (() => StoreFloor) | undefined;
}

export class SlashingProtection {
  readonly #store: RestrainedStore;
  readonly #options: SlashingProtectionOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #memory = signingMemory();

  readonly #queue = checkQueue();
  readonly #batches = new Set<Promise<void>>();
  #again: Promise<void> | undefined;

  readonly #pace: ReturnType<typeof batchPace>;
  #wakeUp: NodeJS.Timeout | undefined;
  #turnScheduled = false;
  #closed = false;
  readonly #health: ReturnType<typeof storeHealth>;
  #ahead: AheadKeys = { keys: new Map(), block: 0, attestation: 0 };

  constructor(store: RestrainedStore, options: SlashingProtectionOptions, { clock, log }: { clock: Clock; log: Log }) {
    this.#store = store;
    this.#options = options;
    this.#clock = clock;
    this.#log = log;
    this.#pace = batchPace(this.#queue, store, clock);
    this.#health = storeHealth(store, options.unopened === true, { clock, log });
  }

  get health(): SlashingHealth {
    return this.#health.now();
  }

  /** Keys that sign nothing until a time that is still to come, as the last look found them. */
  get ahead(): AheadKeys {
    return this.#ahead;
  }

  /** @param asked keys of which the same look tells who has no record that can be read @returns those keys */
  async lookAhead(asked: readonly PublicKeyHex[] = []): Promise<readonly PublicKeyHex[]> {
    const latest = this.#options.latest?.();
    if (this.#options.unopened === true || (latest === undefined && asked.length === 0)) return [];
    try {
      const marks = await this.#store.marksBeyond(asked.length === 0 && latest !== undefined ? latest : NOTHING_SIGNED);
      if (latest !== undefined) this.#noteAhead(marks, latest);
      return asked.filter((key) => !marks.has(key));
    } catch (error) {
      this.#log.warn(
        { err: error },
        'which keys have records ahead of the clock is not known: it is asked again later',
      );
      return [];
    }
  }

  #noteAhead(marks: KeyMarks, latest: StoreFloor): void {
    const { keys: known } = this.#ahead;
    const keys = new Map([...marks].filter(([, own]) => isRolledBack(latest, own)));
    this.#ahead = aheadKeys(keys, latest);
    const said = sayAhead(new Map([...keys].filter(([key]) => !known.has(key))), latest);
    if (said !== undefined) this.#log.warn({ keys: keys.size }, said);
  }

  /** Whether the store lacks what it recorded for this process, as far as it can be looked at in this time. */
  async isLacking(floor: StoreFloor | null, milliseconds: number): Promise<boolean> {
    const until = this.#clock.monotonic() + milliseconds;
    const remembered = [...this.#memory.keys()];
    for (let from = 0; from < remembered.length && this.#clock.monotonic() < until; from += KEYS_LOOKED_AT) {
      const keys = remembered.slice(from, from + KEYS_LOOKED_AT);
      const stored = await this.#store.marksBeyond(NOTHING_SIGNED, keys);
      const marksOf = (key: PublicKeyHex) => higherMarks(floor, stored.get(key) ?? NO_MARKS);
      if (keys.some((key) => isRolledBack(marksOf(key), this.#memory.floors(key)))) return true;
    }
    return false;
  }

  get load(): { readonly queued: number; readonly inFlight: number } {
    return { queued: this.#queue.size, inFlight: this.#queue.busy };
  }

  /**
   * When the promise resolves with `safe` the record is durable. A signal has no effect once the check has begun.
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
   * Messages of different keys, each as `check` does; single messages overtake them. In the order of the messages.
   * @throws before anything is decided: overloaded, shutting_down, the signal's reason
   */
  checkGroup(messages: readonly SlashableMessage[], signal: AbortSignal): Promise<readonly GroupCheckOutcome[]> {
    const refusal = this.#entryRefusal(messages.length, signal);
    if (refusal !== undefined) return Promise.reject(refusal);
    const outcomes = waitForGroup(messages, signal, this.#queue);
    this.#scheduleTurn();
    return outcomes;
  }

  /** SlashingBackend.signedBlockRoot. @throws SignerError as `check` does; the signal's reason when it aborts first */
  async signedBlockRoot(publicKey: PublicKeyHex, slot: number, signal: AbortSignal): Promise<Uint8Array | null> {
    const refusal = this.#entryRefusal(1, signal);
    if (refusal !== undefined) throw refusal;
    return this.#store.signedBlockRoot(publicKey, slot);
  }

  /** A store whose last commit failed is asked for that commit again: only one that takes it is up. */
  checkHealth(signal: AbortSignal): Promise<SlashingHealth> {
    return this.#health.ask(signal, (messages) => this.#checkAgain(messages));
  }

  /** Queued checks are refused. @param waitMs for all of it; half of it at most for the batches under way */
  async close(waitMs = 2 * BATCHES_CLOSE_WAIT_MS): Promise<void> {
    const until = this.#clock.monotonic() + waitMs;
    this.#closed = true;
    clearTimeout(this.#wakeUp);
    for (const check of this.#queue.drain()) {
      check.detach();
      check.reject(new SignerError('shutting_down'));
    }
    await inTime(Promise.all(this.#batches), Math.min(BATCHES_CLOSE_WAIT_MS, waitMs / 2), () =>
      this.#log.error({ batches: this.#batches.size }, 'the slashing store does not answer: it is closed'),
    );
    await this.#store.close(Math.max(0, until - this.#clock.monotonic()));
  }

  /** Records what clients asked for, and signs nothing of it. @throws when the store does not answer */
  #checkAgain(messages: readonly SlashableMessage[]): Promise<void> {
    this.#again ??= this.#decideAgain(messages).finally(() => {
      this.#again = undefined;
    });
    return this.#again;
  }

  async #decideAgain(messages: readonly SlashableMessage[]): Promise<void> {
    if (this.#closed) throw new SignerError('shutting_down');
    const checks = messages.map((message) => {
      const { promise, resolve, reject } = Promise.withResolvers<Decision>();
      this.#queue.add({ message, yields: true, isAgain: true, resolve, reject, detach: () => undefined });
      return promise;
    });
    this.#scheduleTurn();
    const [first, ...others] = await Promise.allSettled(checks);
    if (first?.status === 'rejected' && others.every(({ status }) => status === 'rejected')) throw first.reason;
  }

  #entryRefusal(checks: number, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted === true) return signal.reason;
    if (this.#closed) return new SignerError('shutting_down');
    const limit = this.#options.maxQueuedChecks ?? MAX_QUEUED_CHECKS;
    return this.#queue.size + checks > limit ? new SignerError('overloaded') : undefined;
  }

  /** Once per turn of the event loop, so that requests which arrive together share a batch. */
  #scheduleTurn(): void {
    if (this.#turnScheduled) return;
    this.#turnScheduled = true;
    setImmediate(() => {
      this.#turnScheduled = false;
      this.#startBatches();
    });
  }

  #startBatches(): void {
    const { maxInFlight } = this.#store.batchLimits;
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

  /** The right is asked here and nowhere else on the way to the store: the batch goes there in this very turn. */
  #takeBatch(): WaitingCheck[] {
    const all = this.#store.batchLimits.maxMessages;
    return this.#queue.take({ all, yielding: this.#pace.mostYielding() }).filter((check) => {
      check.detach();
      const fault = this.#faultOf(check.message);
      if (fault === undefined) return true;
      this.#queue.release(check.message.publicKey);
      check.reject(fault);
      return false;
    });
  }

  #faultOf(message: SlashableMessage): SignerError | undefined {
    const { right = this.#store.hindrance } = this.#options;
    const hindrance = right();
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
    let verdicts: readonly SlashingVerdict[] = [];
    let failure: unknown;
    try {
      verdicts = await this.#store.checkAndRecord(messages, floors);
      assert.equal(verdicts.length, messages.length, 'one verdict for each message');
    } catch (error) {
      failure = error ?? new Error('the backend rejected without a reason');
    }
    // The memory first: the readers of the answers find it up to date.
    for (const [place, message] of messages.entries()) {
      if (failure !== undefined) this.#memory.attempted(message);
      else if (verdicts[place]?.kind === 'safe') this.#memory.recorded(message);
    }
    if (failure === undefined) this.#health.answered(verdicts);
    else this.#health.failedCommit(messages, failure);
    const seconds = (this.#clock.monotonic() - started) / 1000;
    const outcome = failure === undefined ? 'committed' : 'failed';
    this.#callHook(() => this.#options.onBatch?.(checks.length, seconds, outcome));
    for (const [place, check] of checks.entries()) this.#answer(check, failure, verdicts[place]);
  }

  /** A message is safe only when the store says so: a failed batch and no verdict are errors. */
  #answer(check: WaitingCheck, failure: unknown, verdict: SlashingVerdict | undefined): void {
    if (failure !== undefined || verdict === undefined) {
      check.reject(
        failure instanceof SignerError ? failure : new SignerError('slashing_unavailable', { cause: failure }),
      );
      return;
    }
    if (verdict.kind === 'safe') return void check.resolve(verdict);
    const { reason } = verdict;
    if (check.isAgain !== true) this.#callHook(() => this.#options.onRefusal?.(reason));
    if (verdict.kind === 'refused') return void check.resolve(verdict);
    // A floor is not the key's: the start has said it, and the health check says it.
    if (reason !== 'below_floor')
      this.#log.error({ public_key: check.message.publicKey, reason }, 'slashing protection fails for a key');
    check.reject(new SignerError(verdict.reason, verdict.hint === undefined ? {} : { hint: verdict.hint }));
  }

  #callHook(hook: () => void): void {
    try {
      hook();
    } catch (error) {
      this.#log.error({ err: error }, 'a hook of slashing protection failed');
    }
  }
}
