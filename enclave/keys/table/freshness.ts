// What this process remembers of the key table, so that an older row of a key, which once was true and still decrypts,
// is refused when it is put back: a key made inactive or deleted stays so. It rests on one rule: every change writes,
// as the row's generation, a revision of its shard that no earlier change had. It remembers nothing across a restart:
// whoever restores the whole table, or puts an old row back while no signer runs, is believed
// (docs/guides/key-table.md).

import { SHARDS, shardOf } from './rows.ts';

interface ShardMemory {
  /** The revision that was read before the last complete read of the shard began; undefined until there was one. */
  revision: number | undefined;
  /** The generation of every key seen, and of keys that this process deleted until the next complete read. */
  readonly generations: Map<string, number>;
}

export class TableFreshness {
  readonly #shards: readonly ShardMemory[] = SHARDS.map(() => ({ revision: undefined, generations: new Map() }));

  revision(shard: number): number | undefined {
    return this.#shard(shard).revision;
  }

  /** The generation this process last saw, or gave by a change of its own. */
  generation(publicKey: string): number | undefined {
    return this.#shard(shardOf(publicKey)).generations.get(publicKey);
  }

  /** The keys of a shard that were seen, and are not known to be gone. */
  keysOf(shard: number): Iterable<string> {
    return this.#shard(shard).generations.keys();
  }

  /** Whether a row of this generation is the one last seen or a later one. */
  isFresh(publicKey: string, generation: number): boolean {
    const { revision, generations } = this.#shard(shardOf(publicKey));
    const seen = generations.get(publicKey);
    if (seen === generation || (seen === undefined && revision === undefined)) return true;
    // What was not there at the last complete read can only have come by a change after it.
    return generation > Math.max(seen ?? 0, revision ?? 0);
  }

  /** A row was verified and is fresh, or this process has changed it; deleting counts. */
  note(publicKey: string, generation: number): void {
    const { generations } = this.#shard(shardOf(publicKey));
    generations.set(publicKey, Math.max(generation, generations.get(publicKey) ?? 0));
  }

  /** The whole shard was read, starting after `revision` was: keys that were not there are forgotten. */
  completeRead(shard: number, revision: number, present: ReadonlySet<string>): void {
    const memory = this.#shard(shard);
    for (const [publicKey, generation] of memory.generations) {
      // What was written after the read began may be missing from it.
      if (!present.has(publicKey) && generation <= revision) memory.generations.delete(publicKey);
    }
    memory.revision = Math.max(memory.revision ?? 0, revision);
  }

  #shard(shard: number): ShardMemory {
    const memory = this.#shards[shard];
    if (memory === undefined) throw new Error('a shard is 0 to 15');
    return memory;
  }
}
