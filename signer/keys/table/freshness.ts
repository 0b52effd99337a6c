// An older row that is put back is refused: every change writes, as the row's generation, a revision of its shard that
// no earlier change had.

import { SHARDS, shardOf } from './rows.ts';

class ShardFreshness {
  /** The revision that was read before the last complete read of the shard began; undefined until there was one. */
  #revision: number | undefined;
  /** The generation of every key seen, and of keys that this process deleted until the next complete read. */
  readonly #generations = new Map<string, number>();

  get revision(): number | undefined {
    return this.#revision;
  }

  generation(publicKey: string): number | undefined {
    return this.#generations.get(publicKey);
  }

  keys(): Iterable<string> {
    return this.#generations.keys();
  }

  isFresh(publicKey: string, generation: number): boolean {
    const seen = this.#generations.get(publicKey);
    if (seen === generation || (seen === undefined && this.#revision === undefined)) return true;
    // What was not there at the last complete read can only have come by a change after it.
    return generation > Math.max(seen ?? 0, this.#revision ?? 0);
  }

  note(publicKey: string, generation: number): void {
    this.#generations.set(publicKey, Math.max(generation, this.#generations.get(publicKey) ?? 0));
  }

  /** The whole shard was read, starting after `revision` was: keys that were not there are forgotten. */
  completeRead(revision: number, present: ReadonlySet<string>): void {
    for (const [publicKey, generation] of this.#generations) {
      // What was written after the read began may be missing from it.
      if (!present.has(publicKey) && generation <= revision) this.#generations.delete(publicKey);
    }
    this.#revision = Math.max(this.#revision ?? 0, revision);
  }
}

export class TableFreshness {
  readonly #shards = SHARDS.map(() => new ShardFreshness());

  ofShard(shard: number): ShardFreshness {
    const freshness = this.#shards[shard];
    if (freshness === undefined) throw new Error('a shard is 0 to 15');
    return freshness;
  }

  isFresh(publicKey: string, generation: number): boolean {
    return this.ofShard(shardOf(publicKey)).isFresh(publicKey, generation);
  }

  note(publicKey: string, generation: number): void {
    this.ofShard(shardOf(publicKey)).note(publicKey, generation);
  }
}
