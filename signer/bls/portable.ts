// The BLS core without a compiler: @chainsafe/blst in worker threads, keys in one shared region that the workers read.
// Slower than the native core (no sharing of hashed roots) and its keys are not in locked memory. A worker that ends
// takes only its own jobs with it.

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { SecretKey } from '@chainsafe/blst';
import type { Log } from '../../common/observe/log.ts';
import { type HeldKey, type KeyHandle, SECRET_KEY_BYTES } from '../keys/vault.ts';
import type { BlsCore, GroupSignature, Lane } from './bls.ts';
import { heldKeys, splitPublicKeys } from './derivation.ts';
import {
  type BatchMessage,
  type DerivationMessage,
  type DerivedMessage,
  encodeBatch,
  type SignedMessage,
} from './portable-batch.ts';
import { createPortableKeys } from './portable-keys.ts';
import {
  busyness,
  type Derivation,
  hasRoomToDerive,
  hasRoomToSign,
  leastBusy,
  MAX_BATCH_JOBS,
  type PinnedJob,
  restartDelayMs,
  type SigningWorker,
} from './portable-workers.ts';
import { createJobQueue, type Job, settleJobs, signingUnavailable } from './queue.ts';

/** Of five batches of a busy core one is of groups at least. */
const MAX_PASSED_OVER = 4;

interface PortableBlsCoreOptions {
  readonly log: Log;
  /** Worker threads. Default: the cores of the machine. */
  readonly cores?: number | undefined;
  /** Tests put a worker here that fails when told. */
  readonly workerUrl?: URL | undefined;
}

export class PortableBlsCore implements BlsCore {
  readonly kind = 'portable';
  readonly memoryLocked = false;
  readonly #keys = createPortableKeys();
  readonly #queue = createJobQueue(() => this.#dispatch());
  #passedOver = 0;
  readonly #derivations: Derivation[] = [];
  readonly #threads: SigningThreads;
  #nextBatch = 0;
  #closed = false;
  /** Resolved when, after `close`, no worker has a job any more. */
  readonly #idle = Promise.withResolvers<void>();

  constructor(options: PortableBlsCoreOptions) {
    this.#threads = new SigningThreads(options.cores ?? availableParallelism(), {
      log: options.log,
      url: options.workerUrl ?? new URL('./portable-worker.ts', import.meta.url),
      region: this.#keys.region,
      onSigned: (worker, message) => this.#onSigned(worker, message),
      onDerived: (worker, message) => this.#onDerived(worker, message),
      onEnded: (worker) => this.#onEnded(worker),
      onReplaced: () => this.#sendNext(),
    });
  }

  unlockedKeys(): number {
    return this.#keys.count();
  }

  addKey(secretKey: Uint8Array): HeldKey {
    if (this.#closed) throw signingUnavailable('the core is closed');
    const publicKey = publicKeyOf(secretKey);
    return { handle: this.#keys.add(secretKey), publicKey };
  }

  async addKeys(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]> {
    if (this.#closed) throw signingUnavailable('the core is closed');
    if (this.#threads.alive.size === 0) throw signingUnavailable('no signing worker is alive');
    const handles = this.#keys.addAll(secretKeys);
    const derive = (batch: readonly KeyHandle[]) => {
      const { promise, resolve, reject } = Promise.withResolvers<readonly (Uint8Array | undefined)[]>();
      this.#derivations.push({ handles: batch, resolve, reject });
      return promise;
    };
    const held = heldKeys(handles, derive, (handle) => this.removeKey(handle));
    this.#dispatch();
    return held;
  }

  removeKey(handle: KeyHandle): void {
    this.#keys.remove(handle);
  }

  sign(handle: KeyHandle, signingRoot: Uint8Array, lane: Lane, caller?: string): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(signingUnavailable('the core is closed'));
    if (this.#threads.alive.size === 0) return Promise.reject(signingUnavailable('no signing worker is alive'));
    return this.#queue.push(handle, signingRoot, lane, caller);
  }

  signGroup(handles: readonly KeyHandle[], signingRoot: Uint8Array, lane: Lane): Promise<readonly GroupSignature[]> {
    if (this.#closed) return Promise.reject(signingUnavailable('the core is closed'));
    if (this.#threads.alive.size === 0) return Promise.reject(signingUnavailable('no signing worker is alive'));
    return this.#queue.pushGroup(handles, signingRoot, lane);
  }

  load(): { queued: number; running: number } {
    let running = 0;
    for (const worker of this.#threads.alive) running += worker.outstanding;
    return { queued: this.#queue.length, running };
  }

  wipe(): void {
    this.#keys.wipe();
  }

  /** Jobs that a worker has already are let finish: at most MAX_WORKER_JOBS each. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#keys.wipe();
    this.#rejectWaiting('the core is closed');
    this.#threads.stopReplacing();
    if (!this.#isIdle) await this.#idle.promise;
    await this.#threads.terminate();
  }

  /** Jobs of one kind: of groups when no others wait, or when it is their turn. */
  #takeEither(most: number): Job[] {
    const { singles, grouped } = this.#queue;
    const isTheirTurn = grouped > 0 && (singles === 0 || this.#passedOver >= MAX_PASSED_OVER);
    this.#passedOver = isTheirTurn || grouped === 0 ? 0 : this.#passedOver + 1;
    return isTheirTurn ? this.#queue.takeGrouped(most) : this.#queue.takeSingles(most);
  }

  /** Give the least busy worker a fair share of the queue, until all are full or nothing waits. */
  #dispatch(): void {
    while (this.#queue.length > 0) {
      const worker = leastBusy(this.#threads.alive, hasRoomToSign);
      if (worker === undefined) break;
      const share = Math.min(Math.ceil(this.#queue.length / this.#threads.alive.size), MAX_BATCH_JOBS);
      this.#send(worker, this.#takeEither(share));
    }
    while (this.#derivations.length > 0) {
      const worker = leastBusy(this.#threads.alive, hasRoomToDerive);
      if (worker === undefined) return;
      this.#sendDerivation(worker, this.#derivations.shift() as Derivation);
    }
  }

  #sendDerivation(worker: SigningWorker, derivation: Derivation): void {
    const slots = derivation.handles.flatMap((handle) => this.#keys.pin(handle) ?? []);
    if (slots.length < derivation.handles.length) {
      for (const slot of slots) this.#keys.unpin(slot);
      derivation.reject(signingUnavailable('the keys are not loaded any more'));
      return;
    }
    const message: DerivationMessage = { number: this.#nextBatch++, slots };
    worker.derivations.set(message.number, { ...derivation, slots });
    worker.thread.ref();
    worker.thread.postMessage(message);
  }

  #onDerived(worker: SigningWorker, { number, publicKeys }: DerivedMessage): void {
    const derivation = worker.derivations.get(number);
    assert(derivation !== undefined);
    worker.derivations.delete(number);
    worker.failuresInARow = 0;
    if (busyness(worker) === 0) worker.thread.unref();
    for (const slot of derivation.slots) this.#keys.unpin(slot);
    this.#dispatch();
    derivation.resolve(splitPublicKeys(publicKeys, derivation.slots.length));
    this.#noteIdle();
  }

  #send(worker: SigningWorker, jobs: readonly Job[]): void {
    const batch: PinnedJob[] = [];
    for (const job of jobs) {
      const slot = this.#keys.pin(job.handle);
      if (slot === undefined) job.reject(signingUnavailable('the key is not loaded any more'));
      else batch.push({ slot, job });
    }
    if (batch.length === 0) return;
    const message: BatchMessage = { number: this.#nextBatch++, jobs: encodeBatch(batch) };
    worker.batches.set(message.number, batch);
    worker.outstanding += batch.length;
    worker.thread.ref(); // the process stays while a caller waits for a signature, and only then
    worker.thread.postMessage(message, [message.jobs.buffer]);
  }

  #onSigned(worker: SigningWorker, { number, signatures }: SignedMessage): void {
    const batch = worker.batches.get(number);
    assert(batch !== undefined);
    worker.batches.delete(number);
    worker.outstanding -= batch.length;
    worker.failuresInARow = 0;
    if (busyness(worker) === 0) worker.thread.unref();
    for (const { slot } of batch) this.#keys.unpin(slot);
    this.#dispatch();
    settleJobs(
      batch.map(({ job }) => job),
      signatures,
    );
    this.#noteIdle();
  }

  #onEnded(worker: SigningWorker): void {
    for (const { slot, job } of [...worker.batches.values()].flat()) {
      this.#keys.unpin(slot);
      job.reject(signingUnavailable('the signing worker ended'));
    }
    for (const { slots, reject } of worker.derivations.values()) {
      for (const slot of slots) this.#keys.unpin(slot);
      reject(signingUnavailable('the signing worker ended'));
    }
    worker.derivations.clear();
    this.#noteIdle();
  }

  #sendNext(): void {
    if (this.#threads.alive.size === 0) this.#rejectWaiting('no signing worker is alive');
    else this.#dispatch();
  }

  #rejectWaiting(why: string): void {
    this.#queue.rejectAll(signingUnavailable(why));
    for (const { reject } of this.#derivations.splice(0)) reject(signingUnavailable(why));
  }

  get #isIdle(): boolean {
    return [...this.#threads.alive].every((worker) => busyness(worker) === 0);
  }

  #noteIdle(): void {
    if (this.#closed && this.#isIdle) this.#idle.resolve();
  }
}

/** blst refuses zero and what is not below the group order; the seam calls that a RangeError. */
export function publicKeyOf(secretKey: Uint8Array): Uint8Array {
  if (secretKey.length !== SECRET_KEY_BYTES) throw new TypeError('a secret key has 32 bytes');
  try {
    return SecretKey.fromBytes(secretKey).toPublicKey().toBytes();
  } catch (error) {
    throw new RangeError('the secret key is zero or not below the group order', { cause: error });
  }
}

// The worker threads of the portable core. They start together. A worker that ends is started again; the more often its
// place failed in a row, the longer this waits. The core itself fails the jobs of a worker that ended.

interface SigningThreadOptions {
  readonly log: Log;
  readonly url: URL;
  /** The secret keys, which the workers read. */
  readonly region: SharedArrayBuffer;
  readonly onSigned: (worker: SigningWorker, message: SignedMessage) => void;
  readonly onDerived: (worker: SigningWorker, message: DerivedMessage) => void;
  /** A worker ended and is no longer among the living. */
  readonly onEnded: (worker: SigningWorker) => void;
  /** Its place was filled again, or will be later. */
  readonly onReplaced: () => void;
}

class SigningThreads {
  readonly #options: SigningThreadOptions;
  readonly #workers = new Set<SigningWorker>();
  readonly #restarts = new Set<NodeJS.Timeout>();
  #stays = true;

  constructor(count: number, options: SigningThreadOptions) {
    this.#options = options;
    for (let started = 0; started < count; started++) this.#start(0);
  }

  get alive(): ReadonlySet<SigningWorker> {
    return this.#workers;
  }

  /** From now on no worker that ends is started again. */
  stopReplacing(): void {
    this.#stays = false;
    for (const restart of this.#restarts) clearTimeout(restart);
  }

  async terminate(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.thread.terminate()));
  }

  #start(failuresInARow: number): void {
    const { url, region, log, onSigned, onDerived } = this.#options;
    const thread = new Worker(url, { workerData: { region }, execArgv: [] });
    const worker: SigningWorker = {
      thread,
      batches: new Map(),
      derivations: new Map(),
      outstanding: 0,
      failuresInARow,
    };
    thread.unref();
    thread.on('message', (answer: SignedMessage | DerivedMessage) => {
      if ('publicKeys' in answer) onDerived(worker, answer);
      else onSigned(worker, answer);
    });
    thread.on('error', (error) => log.error({ err: error }, 'a signing worker failed'));
    thread.on('exit', () => this.#onExit(worker));
    this.#workers.add(worker);
  }

  #onExit(worker: SigningWorker): void {
    this.#workers.delete(worker);
    this.#options.onEnded(worker);
    if (!this.#stays) return;
    this.#replace(worker);
    this.#options.onReplaced();
  }

  #replace({ failuresInARow }: SigningWorker): void {
    const delayMs = restartDelayMs(failuresInARow);
    this.#options.log.error(
      { delay_ms: delayMs, failures_in_a_row: failuresInARow },
      'a signing worker ended; it is started again',
    );
    if (delayMs === 0) {
      this.#start(failuresInARow + 1);
      return;
    }
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      this.#start(failuresInARow + 1);
    }, delayMs);
    this.#restarts.add(restart.unref());
  }
}
