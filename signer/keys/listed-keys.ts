// A hundred thousand keys that came in a batch are a merge, and not a sort.

import { mergeSorted } from './merge-sorted.ts';

export class ListedKeys {
  #published: readonly string[] = [];
  readonly #since = new Set<string>();
  /** Ascending, of batches: a hundred thousand keys are listed without touching each. */
  #batchesSince: (readonly string[])[] = [];
  /** After all of these; added again since, or waiting for the end of a batch, when it is loaded. */
  readonly #removedSince = new Set<string>();
  #isCurrent = true;

  add(publicKey: string): void {
    this.#since.add(publicKey);
    this.#isCurrent = false;
  }

  addAll(publicKeys: readonly string[]): void {
    if (publicKeys.length === 0) return;
    if (this.#removedSince.size > 0) this.#publish(); // of these, too, some may have been removed before
    this.#batchesSince.push(publicKeys);
    this.#isCurrent = false;
  }

  remove(publicKey: string): void {
    this.#since.delete(publicKey);
    this.#removedSince.add(publicKey);
    this.#isCurrent = false;
  }

  clear(): void {
    this.#since.clear();
    this.#batchesSince = [];
    this.#removedSince.clear();
    this.#published = [];
  }

  ascending(): readonly string[] {
    if (!this.#isCurrent) this.#publish();
    return this.#published;
  }

  #publish(): void {
    // A key that was removed and is there again is among those added since, or waits for the end of its batch.
    const stays = (publicKey: string) => !this.#removedSince.has(publicKey);
    const staying = (list: readonly string[]) => (this.#removedSince.size === 0 ? list : list.filter(stays));
    const lists = [...this.#batchesSince.map(staying), [...this.#since].sort()];
    this.#published = lists.reduce(mergeSorted, staying(this.#published));
    this.#batchesSince = [];
    this.#since.clear();
    this.#removedSince.clear();
    this.#isCurrent = true;
  }
}
