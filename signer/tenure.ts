// A key's tenure: the time that a key spends in a store, as a number in its head. Even: the key is there, and signs.
// Odd: it left, and signs nothing. A key that a store has never heard of is in tenure 0, so new keys need no write.
//
// An ending always moves on, also from one odd number to the next: a beginning that read an earlier number fails. A
// beginning is a compare-and-set on the number that was read first. A loaded copy of a key carries the number that was
// read with it, and every check compares it (specification/slashing.md#tenure).

/** By public key (`0x` and 96 lower-case hex digits). Keys that it does not name are in tenure 0. */
export type Tenures = ReadonlyMap<string, number>;

export function isEndedTenure(tenure: number): boolean {
  return tenure % 2 === 1;
}

export function ended(tenure: number): number {
  return tenure + (isEndedTenure(tenure) ? 2 : 1);
}

/** The tenure in which the key signs when it is taken in. */
export function begun(tenure: number): number {
  return tenure + (isEndedTenure(tenure) ? 1 : 0);
}

/** What loaded copies of keys carry. A copy never takes a later tenure by itself. An unknown key is in tenure 0. */
export class TenureBook {
  readonly #read: (publicKeys?: readonly string[]) => Promise<Tenures>;
  #known = new Map<string, number>();

  constructor(read: (publicKeys?: readonly string[]) => Promise<Tenures>) {
    this.#read = read;
  }

  of(publicKey: string): number {
    return this.#known.get(publicKey) ?? 0;
  }

  async learn(publicKeys?: readonly string[]): Promise<void> {
    const read = await this.#read(publicKeys);
    if (publicKeys === undefined) this.#known.clear();
    for (const publicKey of publicKeys ?? []) this.#known.delete(publicKey);
    for (const [publicKey, tenure] of read) this.#known.set(publicKey, tenure);
  }
}

// Keys that are signing now. A tenure ends after them: a key that leaves is first removed from the store, and after the
// wait here its slashing history is final.

export interface InFlightSigning {
  /** In the same turn in which the key was found, so that no removal falls between the two. */
  begin(publicKey: string): void;
  end(publicKey: string): void;
  /** It terminates, because a removed key cannot start new work. */
  drain(publicKeys: readonly string[]): Promise<void>;
}

export function inFlightSigning(): InFlightSigning {
  const counts = new Map<string, number>();
  const waiting = new Map<string, PromiseWithResolvers<void>>();

  return {
    begin: (publicKey) => void counts.set(publicKey, (counts.get(publicKey) ?? 0) + 1),
    end(publicKey) {
      const left = (counts.get(publicKey) ?? 0) - 1;
      if (left > 0) {
        counts.set(publicKey, left);
        return;
      }
      counts.delete(publicKey);
      if (waiting.size === 0) return;
      waiting.get(publicKey)?.resolve();
      waiting.delete(publicKey);
    },
    async drain(publicKeys) {
      for (const publicKey of publicKeys) {
        if (!counts.has(publicKey)) continue;
        const ended = waiting.get(publicKey) ?? Promise.withResolvers<void>();
        waiting.set(publicKey, ended);
        await ended.promise;
      }
    },
  };
}
