// The BLS core over our native addon: this file only decides which jobs go when.

import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { SignerError } from '../api/errors.ts';
import type { HeldKey, KeyHandle } from '../keys/vault.ts';
import type { Addon, Keyring, MemoryPolicy } from '../native/load.ts';
import type { BlsCore, GroupSignature, Lane } from './bls.ts';
import { countSecretKeys, heldKeys, type InTurn, PUBLIC_KEY_BYTES, placesFor, splitPublicKeys } from './derivation.ts';
import {
  createJobQueue,
  type Job,
  ROOT_BYTES,
  rejectJobs,
  SIGNATURE_BYTES,
  settleJobs,
  signingUnavailable,
} from './queue.ts';

const MAX_BATCH_JOBS = 32;
/** Answers go out and new jobs come in while the others are signed. */
const MAX_SINGLE_JOBS = 4;
/** With a table of the root, signatures that are made together take a sixth as long each. */
const MAX_ALIKE_JOBS = 16;
/** Of each kind: enough that no thread waits for the main thread, which has much else to do. */
const BATCHES_PER_THREAD = 4;
/** The addon's limit (native/core-calls.c). */
const MAX_THREADS = 256;

type JobKind = 'single' | 'grouped';

export interface NativeBlsCoreOptions {
  readonly cores?: number | undefined;
  /** Under `required` no key is ever put into memory that is not locked. Default: best_effort. */
  readonly mlock?: MemoryPolicy | undefined;
  /** `signing.root_tables`. Default: true. */
  readonly rootTables?: boolean | undefined;
}

export class NativeBlsCore implements BlsCore {
  readonly kind = 'native';
  readonly #addon: Addon;
  readonly #keyring: Keyring;
  readonly #threads: number;
  readonly #mostAlike: number;
  readonly #queue = createJobQueue(() => this.#dispatch());
  readonly #handles = new Float64Array(MAX_BATCH_JOBS);
  readonly #roots = new Uint8Array(MAX_BATCH_JOBS * ROOT_BYTES);
  /** In the addon single jobs overtake those of groups, so neither kind takes the other's places. */
  readonly #batches: Record<JobKind, number> = { single: 0, grouped: 0 };
  #running = 0;
  /** Of batches of public keys, which the threads of groups derive. */
  readonly #inPlace: InTurn;
  #derivations = 0;
  #closed = false;
  readonly #idle = Promise.withResolvers<void>();

  /** @throws Error when memory for keys, or a thread, is refused */
  constructor(addon: Addon, options: NativeBlsCoreOptions = {}) {
    this.#addon = addon;
    this.#threads = Math.min(options.cores ?? availableParallelism(), MAX_THREADS);
    this.#mostAlike = options.rootTables === false ? MAX_SINGLE_JOBS : MAX_ALIKE_JOBS;
    this.#inPlace = placesFor(this.#threads * BATCHES_PER_THREAD);
    this.#keyring = addon.openKeyring(options.mlock ?? 'best_effort', options.rootTables ?? true, this.#threads);
  }

  get memoryLocked(): boolean {
    return this.#addon.secretMemory().unlockedBytes === 0;
  }

  unlockedKeys(): number {
    return this.#addon.unlockedKeys(this.#keyring);
  }

  addKey(secretKey: Uint8Array): HeldKey {
    if (this.#closed) throw signingUnavailable('the core is closed');
    const publicKey = new Uint8Array(PUBLIC_KEY_BYTES);
    const handle = this.#addon.addKey(this.#keyring, secretKey, publicKey) as KeyHandle;
    return { handle, publicKey };
  }

  async addKeys(secretKeys: Uint8Array): Promise<readonly (HeldKey | undefined)[]> {
    if (this.#closed) throw signingUnavailable('the core is closed');
    const handles = new Float64Array(countSecretKeys(secretKeys));
    if (handles.length === 0) return [];
    this.#addon.takeKeys(this.#keyring, secretKeys, handles);
    return heldKeys(
      // What is read from a Float64Array has 16 bytes of its own; a small number that is computed has none.
      Array.from(handles, (handle) => Math.floor(handle) as KeyHandle),
      (batch) => this.#inPlace(() => this.#derive(batch)),
      (handle) => this.removeKey(handle),
    );
  }

  sharePublicKey(commitments: Uint8Array, participantId: number): Uint8Array | undefined {
    const publicKey = new Uint8Array(PUBLIC_KEY_BYTES);
    try {
      this.#addon.sharePublicKey(commitments, participantId, publicKey);
      return publicKey;
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
  }

  removeKey(handle: KeyHandle): void {
    this.#addon.removeKey(this.#keyring, handle);
  }

  sign(handle: KeyHandle, signingRoot: Uint8Array, lane: Lane, caller?: string): Promise<Uint8Array> {
    if (this.#closed) return Promise.reject(signingUnavailable('the core is closed'));
    return this.#queue.push(handle, signingRoot, lane, caller);
  }

  signGroup(handles: readonly KeyHandle[], signingRoot: Uint8Array, lane: Lane): Promise<readonly GroupSignature[]> {
    if (this.#closed) return Promise.reject(signingUnavailable('the core is closed'));
    return this.#queue.pushGroup(handles, signingRoot, lane);
  }

  load(): { queued: number; running: number } {
    return { queued: this.#queue.length, running: this.#running };
  }

  wipe(): void {
    this.#addon.wipeKeyring(this.#keyring);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#addon.closeKeyring(this.#keyring);
    this.#queue.rejectAll(signingUnavailable('the core is closed'));
    if (this.#batchesUnderWay > 0) await this.#idle.promise;
  }

  get #batchesUnderWay(): number {
    return this.#batches.single + this.#batches.grouped + this.#derivations;
  }

  #noteIdle(): void {
    if (this.#closed && this.#batchesUnderWay === 0) this.#idle.resolve();
  }

  async #derive(handles: readonly KeyHandle[]): Promise<readonly (Uint8Array | undefined)[]> {
    if (this.#closed) throw signingUnavailable('the core is closed');
    this.#derivations += 1;
    try {
      const answer = await this.#addon.publicKeys(this.#keyring, Float64Array.from(handles));
      const publicKeys = splitPublicKeys(new Uint8Array(answer), handles.length);
      // Handle 0 is what the addon calls a scalar that it refused.
      const isGone = (handle: KeyHandle, index: number) => handle !== 0 && publicKeys[index] === undefined;
      if (handles.some(isGone)) throw signingUnavailable('the keys are not loaded any more');
      return publicKeys;
    } catch (error) {
      throw error instanceof SignerError ? error : signingUnavailable('public keys could not be derived', error);
    } finally {
      this.#derivations -= 1;
      this.#noteIdle();
    }
  }

  #dispatch(): void {
    const most = this.#threads * BATCHES_PER_THREAD;
    while (this.#queue.singles > 0 && this.#batches.single < most) {
      const share = Math.ceil(this.#queue.singles / this.#threads);
      this.#begin(
        'single',
        this.#queue.takeSingles(Math.min(share, MAX_SINGLE_JOBS), Math.min(share, this.#mostAlike)),
      );
    }
    while (this.#queue.grouped > 0 && this.#batches.grouped < most) {
      const share = Math.ceil(this.#queue.grouped / this.#threads);
      this.#begin('grouped', this.#queue.takeGrouped(Math.min(share, MAX_BATCH_JOBS)));
    }
  }

  #begin(kind: JobKind, jobs: readonly Job[]): void {
    this.#batches[kind] += 1;
    this.#running += jobs.length;
    void this.#run(kind, jobs);
  }

  /** Never rejects. What is under way is begun before the answers, which take the main thread a while. */
  async #run(kind: JobKind, jobs: readonly Job[]): Promise<void> {
    let signatures: Uint8Array | undefined;
    let failure: unknown;
    try {
      const bytes = new Uint8Array(await this.#signBatch(kind, jobs));
      assert.equal(bytes.length, jobs.length * SIGNATURE_BYTES);
      signatures = bytes;
    } catch (error) {
      failure = error;
    }
    this.#batches[kind] -= 1;
    this.#running -= jobs.length;
    this.#dispatch();
    if (signatures === undefined) rejectJobs(jobs, signingUnavailable('the batch failed', failure));
    else settleJobs(jobs, signatures);
    this.#noteIdle();
  }

  /** Async, so that what the addon throws comes after the batches that are begun meanwhile. */
  async #signBatch(kind: JobKind, jobs: readonly Job[]): Promise<ArrayBuffer> {
    let place = 0;
    for (const { handle } of jobs) this.#handles[place++] = handle;
    const handles = this.#handles.subarray(0, jobs.length);
    const [first] = jobs;
    if (kind === 'grouped' && first !== undefined) return this.#addon.signGroup(this.#keyring, handles, first.root);
    place = 0;
    for (const { root } of jobs) this.#roots.set(root, ROOT_BYTES * place++);
    return this.#addon.signBatch(this.#keyring, handles, this.#roots.subarray(0, jobs.length * ROOT_BYTES));
  }
}
