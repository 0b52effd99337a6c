// What a load of key files comes to, and a line in the log now and then, because ten thousand keystores take an hour.
// Given places, public keys and reasons: no secrets.

import type { Clock } from '../../../common/observe/clock.ts';
import { type Log, toMilli } from '../../../common/observe/log.ts';
import type { ForeignKind } from './foreign-file.ts';

export interface KeyPlace {
  readonly file: string;
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
  /** Documents whose key was there already, from an earlier document or another source. */
  readonly duplicates: readonly (KeyPlace & { readonly publicKey: string })[];
  readonly failures: readonly (KeyPlace & { readonly reason: string })[];
  readonly seconds: number;
}

export interface LoadProgress {
  /** Keystores that were opened, or could not be. */
  readonly done: number;
  readonly total: number;
  readonly loaded: number;
  readonly duplicates: number;
  readonly failures: number;
  readonly keystoresRemaining: number;
  readonly remainingSeconds: number | undefined;
}

const PROGRESS_INTERVAL_SECONDS = 10;
const NO_KEY_LEFT = 'this look took out every key of the key files: put their files back, unless that is meant';
const NO_KEYS = 'files beside the keys hold no key of a validator: they are ignored, and may be moved elsewhere';

export class LoadReport {
  readonly #parts: { readonly log: Log; readonly clock: Clock; readonly onProgress?: (progress: LoadProgress) => void };
  readonly #started: number;
  #progressDue: number;
  #loaded = 0;
  #kept = 0;
  /** The earliest document that gave each key loaded or kept here. */
  readonly #firstPlaces = new Map<string, OrderedPlace>();
  readonly #duplicates: (OrderedPlace & { publicKey: string })[] = [];
  readonly #failures: (OrderedPlace & { reason: string })[] = [];
  readonly #ignored = new Map<ForeignKind, number>();
  #keystores = { total: 0, done: 0, started: 0 };

  constructor(parts: { log: Log; clock: Clock; onProgress?: (progress: LoadProgress) => void }) {
    this.#parts = parts;
    this.#started = parts.clock.monotonic();
    this.#progressDue = this.#started + PROGRESS_INTERVAL_SECONDS * 1000;
  }

  expectKeystores(total: number): void {
    this.#keystores = { total, done: 0, started: this.#parts.clock.monotonic() };
  }

  load(place: OrderedPlace, publicKey: string): void {
    this.#loaded += 1;
    this.#firstPlaces.set(publicKey, place);
    this.#step();
  }

  keep(place: OrderedPlace, publicKey: string): void {
    this.#kept += 1;
    this.#firstPlaces.set(publicKey, place);
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

  /** A file in a folder of keys that holds no key. */
  ignore(kind: ForeignKind): void {
    this.#ignored.set(kind, (this.#ignored.get(kind) ?? 0) + 1);
    this.#step();
  }

  /** @param removed keys that were taken out */
  finish(removed: number): FilesystemLoad {
    const kept = this.#kept;
    const seconds = (this.#parts.clock.monotonic() - this.#started) / 1000;
    const duplicates = this.#duplicates
      .sort(byOrder)
      .map(({ file, document, publicKey }) => ({ file, document, publicKey }));
    for (const { file, document, publicKey } of duplicates) {
      const first_file = this.#firstPlaces.get(publicKey)?.file;
      this.#parts.log.warn({ file, document, first_file, public_key: publicKey }, 'a key is described more than once');
    }
    if (this.#ignored.size > 0) this.#parts.log.warn(Object.fromEntries(this.#ignored), NO_KEYS);
    const failures = this.#failures.sort(byOrder).map(({ file, document, reason }) => ({ file, document, reason }));
    const counts = { loaded: this.#loaded, kept, removed, duplicates: duplicates.length, failures: failures.length };
    this.#parts.log.info({ ...counts, seconds: toMilli(seconds) }, 'the key files are loaded');
    if (removed > 0 && this.#loaded + kept === 0) this.#parts.log.warn({ removed }, NO_KEY_LEFT);
    return { loaded: this.#loaded, kept, removed, duplicates, failures, seconds };
  }

  #step(): void {
    this.#keystores.done += 1;
    const now = this.#parts.clock.monotonic();
    if (now < this.#progressDue) return;
    this.#progressDue = now + PROGRESS_INTERVAL_SECONDS * 1000;
    const progress = this.#progressAt(now);
    const { loaded, duplicates, failures, keystoresRemaining, remainingSeconds } = progress;
    const remaining = { keystores_remaining: keystoresRemaining, remaining_seconds: toMilli(remainingSeconds) };
    this.#parts.log.info({ loaded, duplicates, failures, ...remaining }, 'loading key files');
    this.#parts.onProgress?.(progress);
  }

  get progress(): LoadProgress {
    return this.#progressAt(this.#parts.clock.monotonic());
  }

  #progressAt(now: number): LoadProgress {
    const { total, done, started } = this.#keystores;
    return {
      done,
      total,
      loaded: this.#loaded,
      duplicates: this.#duplicates.length,
      failures: this.#failures.length,
      keystoresRemaining: Math.max(0, total - done),
      remainingSeconds: total === 0 || done === 0 ? undefined : ((total - done) * (now - started)) / done / 1000,
    };
  }
}

function byOrder(a: OrderedPlace, b: OrderedPlace): number {
  return a.order - b.order;
}
