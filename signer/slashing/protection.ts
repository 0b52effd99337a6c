// Slashing protection as the signing path sees it. It groups concurrent requests into batches for the backend and
// remembers what this process has signed. It trusts only plain answers of a backend: a failed, short or unknown answer
// is a doubt, and the signer answers a doubt with 503.

import { strict as assert } from 'node:assert';
import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { SignerError } from '../api/errors.ts';
import { type CheckQueue, checkQueue, type GroupCheckOutcome, type WaitingCheck, waitForGroup } from './check-queue.ts';
import { type Decision, isBeyondHistory, isRolledBack, marksOf, NO_MARKS } from './history/rules.ts';
import type { RestrainedStore } from './restraints.ts';
import type {
  HighWaterMarks,
  KeyFault,
  PublicKeyHex,
  SlashableMessage,
  SlashingBackend,
  SlashingRefusal,
  Verdict,
} from './types.ts';

/** The next one is `overloaded`. */
const MAX_QUEUED_CHECKS = 16_384;
/** What the store has not answered then is 503. */
export const BATCHES_CLOSE_WAIT_MS = 10_000;

export interface SlashingProtectionOptions {
  readonly maxQueuedChecks?: number;
  /** A store holds less than this process knows to be recorded; called once for each such answer. */
  readonly onRollback?: () => void;
  readonly onRefusal?: (reason: SlashingRefusal | KeyFault) => void;
  readonly onBatch?: (size: number, seconds: number, outcome: 'committed' | 'failed') => void;
  readonly unopened?: boolean;
}

export class SlashingProtection {
  readonly #store: RestrainedStore;
  readonly #options: SlashingProtectionOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #memory = signingMemory();

  readonly #queue = checkQueue();
  readonly #batches = new Set<Promise<void>>();

  readonly #pace: ReturnType<typeof batchPace>;
  #wakeUp: NodeJS.Timeout | undefined;
  #turnScheduled = false;
  #closed = false;
  readonly #health: ReturnType<typeof storeHealth>;

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

  checkHealth(signal: AbortSignal): Promise<SlashingHealth> {
    return this.#health.ask(signal);
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
    await this.#store.close(Math.max(0, until - this.#clock.monotonic()));
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

  /** Those that may not reach the store, or that a failed commit put in doubt, are answered here. */
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
    const hindrance = this.#store.hindrance();
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
      verdicts = await this.#store.checkAndRecord(messages, floors);
      assert.equal(verdicts.length, messages.length, 'one verdict for each message');
    } catch (error) {
      failure = error ?? new Error('the backend rejected without a reason');
    }
    // The memory first: whoever reads the answers finds it up to date.
    for (const [place, message] of messages.entries()) {
      if (failure !== undefined) this.#memory.attempted(message);
      else if (verdicts[place]?.kind === 'safe') this.#memory.recorded(message);
    }
    const isHindered = this.#store.hindrance() !== undefined; // a right that was lost says nothing of the store
    if (failure === undefined || !isHindered) this.#health.heard(failure === undefined ? 'up' : 'down', failure);
    const seconds = (this.#clock.monotonic() - started) / 1000;
    const outcome = failure === undefined ? 'committed' : 'failed';
    this.#callHook(() => this.#options.onBatch?.(checks.length, seconds, outcome));
    for (const [place, check] of checks.entries()) this.#answer(check, failure, verdicts[place]);
  }

  /** A message is safe only when the store says so: a failed batch, no verdict, and a right that is lost are errors. */
  #answer(check: WaitingCheck, failure: unknown, verdict: Verdict | undefined): void {
    if (failure !== undefined || verdict === undefined) {
      check.reject(
        failure instanceof SignerError ? failure : new SignerError('slashing_unavailable', { cause: failure }),
      );
      return;
    }
    if (verdict.kind === 'safe') {
      // A process that was stopped in between may have lost the right meanwhile.
      const lost = this.#store.hindrance();
      if (lost === undefined) check.resolve(verdict);
      else check.reject(new SignerError(lost));
      return;
    }
    const { reason } = verdict;
    this.#callHook(() => this.#options.onRefusal?.(reason));
    if (verdict.kind === 'refused') {
      check.resolve(verdict);
      return;
    }
    this.#log.error({ public_key: check.message.publicKey, reason }, 'slashing protection fails for a key');
    if (reason === 'slashing_rollback') this.#callHook(() => this.#options.onRollback?.());
    check.reject(new SignerError(verdict.reason));
  }

  #callHook(hook: () => void): void {
    try {
      hook();
    } catch (error) {
      this.#log.error({ err: error }, 'a hook of slashing protection failed');
    }
  }
}

// What this process remembers of each key, whatever the store says: the recorded marks (a store with less was rolled
// back), and the last message whose commit failed. Another message in its place is a doubt, and is never signed.

function signingMemory() {
  const marks = markTable();
  const doubts: Readonly<Record<SlashableMessage['kind'], Map<PublicKeyHex, SlashableMessage>>> = {
    block: new Map(),
    attestation: new Map(),
  };
  return {
    floors: marks.read,

    recorded(message: SlashableMessage): void {
      const { kind, publicKey } = message;
      const own = marksOf(message);
      marks.raise(publicKey, own);
      const doubt = doubts[kind].get(publicKey);
      if (doubt !== undefined && !isRolledBack(own, marksOf(doubt))) doubts[kind].delete(publicKey);
    },

    /**
     * A commit of this message failed: it may be recorded. Only messages that are not in doubt are attempted, so it is
     * the earlier one again or lies beyond it.
     */
    attempted(message: SlashableMessage): void {
      doubts[message.kind].set(message.publicKey, message);
    },

    /** A failed attempt stands in this message's way; the same message may be tried again. */
    isInDoubt(message: SlashableMessage): boolean {
      const doubt = doubts[message.kind].get(message.publicKey);
      if (doubt === undefined) return false;
      const [own, attempted] = [marksOf(message), marksOf(doubt)];
      if (isBeyondHistory(message, attempted)) return false;
      const isSamePlace = !isRolledBack(own, attempted) && !isRolledBack(attempted, own);
      return !isSamePlace || Buffer.compare(message.signingRoot, doubt.signingRoot) !== 0;
    },
  };
}

const NONE = -1;
const COLUMNS = 3;
const FIRST_CAPACITY = 256;

/** Three numbers a key in one typed array: an object a key would take four times as much. */
function markTable() {
  const rows = new Map<PublicKeyHex, number>();
  let values = new Float64Array(FIRST_CAPACITY * COLUMNS).fill(NONE);

  function rowOf(publicKey: PublicKeyHex): number {
    const known = rows.get(publicKey);
    if (known !== undefined) return known;
    const row = rows.size * COLUMNS;
    if (row === values.length) {
      const larger = new Float64Array(values.length * 2).fill(NONE);
      larger.set(values);
      values = larger;
    }
    rows.set(publicKey, row);
    return row;
  }
  function valueAt(place: number): number | null {
    const value = values[place];
    return value === undefined || value === NONE ? null : value;
  }
  function raise(place: number, mark: number | null): void {
    if (mark !== null && mark > (values[place] ?? NONE)) values[place] = mark;
  }

  return {
    read(publicKey: PublicKeyHex): HighWaterMarks {
      const row = rows.get(publicKey);
      if (row === undefined) return NO_MARKS;
      return { blockSlot: valueAt(row), sourceEpoch: valueAt(row + 1), targetEpoch: valueAt(row + 2) };
    },
    raise(publicKey: PublicKeyHex, { blockSlot, sourceEpoch, targetEpoch }: HighWaterMarks): void {
      const row = rowOf(publicKey);
      raise(row, blockSlot);
      raise(row + 1, sourceEpoch);
      raise(row + 2, targetEpoch);
    },
  };
}

// Batches keep a distance under load: a store that gets each message alone does less work.

/** In one commit: when no single message has come for a second, when one has, and beside one, which waits for it. */
const MAX_YIELDING = { undisturbed: 128, lately: 48, beside: 16 };
const LATELY_MS = 1000;

function batchPace(
  queue: Pick<CheckQueue, 'takeable' | 'hasOthers'>,
  { batchLimits }: Pick<SlashingBackend, 'batchLimits'>,
  clock: Pick<Clock, 'monotonic'>,
) {
  let lastSingleAt = Number.NEGATIVE_INFINITY;
  let lastOfOthersAt = Number.NEGATIVE_INFINITY;
  let lastBatch = { startedAt: Number.NEGATIVE_INFINITY, size: 0 };
  return {
    singleCame(): void {
      lastSingleAt = clock.monotonic();
    },
    began(checks: readonly WaitingCheck[]): void {
      const startedAt = clock.monotonic();
      lastBatch = { startedAt, size: checks.length };
      if (checks.some(({ yields }) => !yields)) lastOfOthersAt = startedAt;
    },
    /** One message by itself, after another by itself, keeps no distance, nor single messages from groups. */
    pauseMilliseconds(batchesUnderWay: number): number {
      const alone = queue.takeable === 1 && batchesUnderWay === 0 && lastBatch.size <= 1;
      if (alone) return 0;
      const last = queue.hasOthers ? lastOfOthersAt : lastBatch.startedAt;
      return last + batchLimits.minIntervalMs - clock.monotonic();
    },
    mostYielding(): number {
      if (queue.hasOthers) return MAX_YIELDING.beside;
      const isUndisturbed = clock.monotonic() - lastSingleAt > LATELY_MS;
      return isUndisturbed ? MAX_YIELDING.undisturbed : MAX_YIELDING.lately;
    },
  };
}

// Health decides nothing: a store that is down is still asked.

export interface SlashingHealth {
  readonly status: 'up' | 'down' | 'unopened';
  /** Wall time of the answer or failure this comes from, milliseconds since the Unix epoch. */
  readonly since: number;
}

function storeHealth(store: RestrainedStore, isUnopened: boolean, { clock, log }: { clock: Clock; log: Log }) {
  let now: SlashingHealth = { status: isUnopened ? 'unopened' : 'up', since: clock.now() };

  function heard(status: 'up' | 'down', cause?: unknown): void {
    if (status !== now.status) {
      if (status === 'up') log.info({ backend: store.name }, 'slashing protection is available again');
      else log.error({ backend: store.name, err: cause }, 'slashing protection is unavailable');
    }
    now = { status, since: clock.now() };
  }

  return {
    now: () => now,
    heard,
    async ask(signal: AbortSignal): Promise<SlashingHealth> {
      if (isUnopened) return now;
      try {
        await store.checkHealth(signal);
        heard('up');
      } catch (error) {
        heard('down', error);
      }
      return now;
    },
  };
}
