// Keys of the table that are not to be loaded now, because somebody is changing them: a look may have read their rows
// from before the change. Who withholds a key releases it, and then its row is read anew.

export class WithheldKeys {
  readonly #onReleased: (publicKey: string) => void;
  /** How often each is withheld now. */
  readonly #counts = new Map<string, number>();
  /** Released since the look under way began: as good as withheld until it ends. */
  readonly #releasedMeanwhile = new Set<string>();

  constructor(onReleased: (publicKey: string) => void) {
    this.#onReleased = onReleased;
  }

  /** @returns what releases them, once */
  withhold(publicKeys: readonly string[]): () => void {
    for (const key of publicKeys) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      for (const key of publicKeys) this.#release(key);
    };
  }

  has(publicKey: string): boolean {
    return this.#counts.has(publicKey) || this.#releasedMeanwhile.has(publicKey);
  }

  beginLook(): void {
    this.#releasedMeanwhile.clear();
  }

  releasedMeanwhile(): readonly string[] {
    return [...this.#releasedMeanwhile];
  }

  #release(publicKey: string): void {
    const left = (this.#counts.get(publicKey) ?? 1) - 1;
    if (left > 0) this.#counts.set(publicKey, left);
    else this.#counts.delete(publicKey);
    this.#releasedMeanwhile.add(publicKey);
    this.#onReleased(publicKey);
  }
}
