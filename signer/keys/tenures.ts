// The tenures that loaded copies of keys carry (specification/slashing.md#tenure). A copy never takes a later one by
// itself. What the book does not know is tenure 0.

import type { Tenures } from '../tenure.ts';

export class TenureBook {
  readonly #read: (publicKeys?: readonly string[]) => Promise<Tenures>;
  #known: ReadonlyMap<string, number> = new Map();

  constructor(read: (publicKeys?: readonly string[]) => Promise<Tenures>) {
    this.#read = read;
  }

  of(publicKey: string): number {
    return this.#known.get(publicKey) ?? 0;
  }

  async learn(publicKeys?: readonly string[]): Promise<void> {
    const read = await this.#read(publicKeys);
    const known = publicKeys === undefined ? new Map<string, number>() : new Map(this.#known);
    for (const publicKey of publicKeys ?? []) known.delete(publicKey);
    for (const [publicKey, tenure] of read) known.set(publicKey, tenure);
    this.#known = known;
  }
}
