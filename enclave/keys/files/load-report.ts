// What a load of key files comes to: what was loaded, which documents repeat a key, which files are bad; and a line in
// the log now and then, because ten thousand keystores take an hour (specification/keys.md#keystores). Given places,
// public keys and reasons: no secrets.

import type { Clock } from '../../../observe/clock.ts';
import { type Log, toMilli } from '../../../observe/log.ts';

/** One document of a descriptor file. */
export interface KeyPlace {
  readonly file: string;
  /** Counted from 1. */
  readonly document: number;
}

/** `order` ascends by directory as configured, file name and document. */
export type OrderedPlace = KeyPlace & { readonly order: number };

export interface FilesystemLoad {
  readonly loaded: number;
  /** Keys of an earlier look that are still described. */
  readonly kept: number;
  /** Keys of an earlier look whose files are gone: they sign no more. */
  readonly removed: number;
  /**
   * Documents whose key was there already: from an earlier document, whichever was decrypted first, or from another
   * source.
   */
  readonly duplicates: readonly (KeyPlace & { readonly publicKey: string })[];
  readonly failures: readonly (KeyPlace & { readonly reason: string })[];
  readonly seconds: number;
}

export interface LoadProgress {
  readonly loaded: number;
  readonly duplicates: number;
  readonly failures: number;
  readonly keystoresRemaining: number;
  /** Undefined until some keystores are done. */
  readonly remainingSeconds: number | undefined;
}

const PROGRESS_INTERVAL_SECONDS = 10;

export class LoadReport {
  readonly #parts: { readonly log: Log; readonly clock: Clock; readonly onProgress?: (progress: LoadProgress) => void };
  readonly #started: number;
  #progressDue: number;
  #loaded = 0;
  /** The earliest document that gave each key loaded here. */
  readonly #firstPlaces = new Map<string, OrderedPlace>();
  readonly #duplicates: (OrderedPlace & { publicKey: string })[] = [];
  readonly #failures: (OrderedPlace & { reason: string })[] = [];
  #keystores = { total: 0, done: 0, started: 0 };

  constructor(parts: { log: Log; clock: Clock; onProgress?: (progress: LoadProgress) => void }) {
    this.#parts = parts;
    this.#started = parts.clock.monotonic();
    this.#progressDue = this.#started + PROGRESS_INTERVAL_SECONDS * 1000;
  }

  /** From now on every document is one of so many keystores. */
  expectKeystores(total: number): void {
    this.#keystores = { total, done: 0, started: this.#parts.clock.monotonic() };
  }

  load(place: OrderedPlace, publicKey: string): void {
    this.#loaded += 1;
    this.#firstPlaces.set(publicKey, place);
    this.#step();
  }

  duplicate(place: OrderedPlace, publicKey: string): void {
    const first = this.#firstPlaces.get(publicKey);
    const isEarlier = first !== undefined && place.order < first.order;
    if (isEarlier) this.#firstPlaces.set(publicKey, place);
    this.#duplicates.push({ ...(isEarlier ? first : place), publicKey });
    this.#step();
  }

  fail(place: OrderedPlace, reason: string): void {
    this.#failures.push({ ...place, reason });
    this.#parts.log.error({ file: place.file, document: place.document, reason }, 'a key was not loaded');
    this.#step();
  }

  /**
   * The result in the order of the files, and its line in the log.
   * @param keys that were loaded before: still there, taken out
   */
  finish({ kept, removed }: { readonly kept: number; readonly removed: number }): FilesystemLoad {
    const seconds = (this.#parts.clock.monotonic() - this.#started) / 1000;
    const duplicates = this.#duplicates
      .sort(byOrder)
      .map(({ file, document, publicKey }) => ({ file, document, publicKey }));
    for (const { file, document, publicKey } of duplicates) {
      this.#parts.log.warn({ file, document, public_key: publicKey }, 'a key is described more than once');
    }
    const failures = this.#failures.sort(byOrder).map(({ file, document, reason }) => ({ file, document, reason }));
    const counts = { loaded: this.#loaded, kept, removed, duplicates: duplicates.length, failures: failures.length };
    this.#parts.log.info({ ...counts, seconds: toMilli(seconds) }, 'the key files are loaded');
    return { loaded: this.#loaded, kept, removed, duplicates, failures, seconds };
  }

  #step(): void {
    this.#keystores.done += 1;
    const now = this.#parts.clock.monotonic();
    if (now < this.#progressDue) return;
    this.#progressDue = now + PROGRESS_INTERVAL_SECONDS * 1000;
    const { total, done, started } = this.#keystores;
    const progress: LoadProgress = {
      loaded: this.#loaded,
      duplicates: this.#duplicates.length,
      failures: this.#failures.length,
      keystoresRemaining: Math.max(0, total - done),
      remainingSeconds: total === 0 ? undefined : ((total - done) * (now - started)) / done / 1000,
    };
    const { keystoresRemaining, remainingSeconds, ...counts } = progress;
    const remaining = { keystores_remaining: keystoresRemaining, remaining_seconds: toMilli(remainingSeconds) };
    this.#parts.log.info({ ...counts, ...remaining }, 'loading key files');
    this.#parts.onProgress?.(progress);
  }
}

function byOrder(a: OrderedPlace, b: OrderedPlace): number {
  return a.order - b.order;
}
