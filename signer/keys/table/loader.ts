// Keeps the KeyStore like the key table: a look at 16 revision rows every interval, and a read of the shards that
// moved. A row that fails disturbs no other; a look that fails keeps the loaded set.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import { jitteredInterval } from '../../../common/flow/backoff.ts';
import { oneAfterTheOther, sharedTurns } from '../../../common/flow/turns.ts';
import { SignerError } from '../../api/errors.ts';
import { chunks, inParallel } from '../../parallel.ts';
import type { KeyStore } from '../store.ts';
import { readRevisions } from './calls.ts';
import { SHARDS, shardOf } from './rows.ts';
import { type ReadShard, type ShardRead, shardReader } from './shard.ts';
import type { KeyTableParts } from './table.ts';
import type { KeyStatus, KeyTableLoader } from './types.ts';

export interface TableLoaderOptions {
  readonly statusFilter: readonly KeyStatus[];
  /** 0: never again after the first load. */
  readonly refreshIntervalSeconds: number;
  readonly maxConcurrentReads: number;
}

interface TableLoaderParts extends KeyTableParts {
  readonly store: KeyStore;
  readonly onLoaded?: ((load: TableLoad) => void) | undefined;
  readonly onLookFailed?: (() => void) | undefined;
}

export interface TableLoad {
  readonly refusedRows: number;
  /** Good rows in all shards; without those whose key another source has loaded. */
  readonly keys: Readonly<Record<KeyStatus, number>>;
  readonly shardsRead: number;
  readonly seconds: number;
}

/** The table is out of reach, or a signing worker ended with the keys that were on their way. */
const PASSING: ReadonlySet<string> = new Set(['key_table_unavailable', 'signing_unavailable']);

/** Few enough that renewing them does not hold up signing. */
const TENURES_AT_ONCE = 4096;
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** No complete look for max(5 intervals, 10 s) is stale, as for the state table. */
const STALE_INTERVALS = 5;
const STALE_AT_LEAST_SECONDS = 10;

/** `revision`: read before the last complete read; undefined asks for a read. */
type ShardState = ShardRead & { readonly revision: number | undefined };

const UNREAD: ShardState = {
  revision: undefined,
  counts: { active: 0, inactive: 0 },
  refused: new Map(),
  present: new Set(),
  inactive: new Set(),
};

export class TableLoader implements KeyTableLoader {
  readonly statusFilter: ReadonlySet<KeyStatus>;
  readonly #options: TableLoaderOptions;
  readonly #parts: TableLoaderParts;
  readonly #readShard: ReadShard;
  readonly #stop = new AbortController();
  readonly #shards: ShardState[] = SHARDS.map(() => UNREAD);
  /** What it read of a key that is released during a look may be from before the key's change. */
  readonly #withheld = new WithheldKeys((publicKey) => this.#setShard(shardOf(publicKey), { revision: undefined }));
  readonly #inTurn = oneAfterTheOther();
  #lastLookAt: number | undefined;
  #found = new Set<string>();
  #failures = 0;

  constructor(options: TableLoaderOptions, parts: TableLoaderParts) {
    this.#options = options;
    this.#parts = parts;
    this.statusFilter = new Set(options.statusFilter);
    this.#readShard = shardReader({
      ...parts,
      statusFilter: this.statusFilter,
      isWithheld: (publicKey) => this.#withheld.has(publicKey),
      signal: this.#stop.signal,
    });
  }

  /** Out of sight for so long that keys made inactive elsewhere may still sign here. */
  get stale(): boolean {
    const { refreshIntervalSeconds } = this.#options;
    if (refreshIntervalSeconds === 0 || this.#lastLookAt === undefined) return false;
    const ageSeconds = (this.#parts.clock.monotonic() - this.#lastLookAt) / 1000;
    return ageSeconds > Math.max(STALE_INTERVALS * refreshIntervalSeconds, STALE_AT_LEAST_SECONDS);
  }

  get rows(): Readonly<Record<KeyStatus, number>> {
    return this.#parts.store.state === 'sealed' ? { active: 0, inactive: 0 } : this.#totals().keys;
  }

  get refusedRows(): number {
    return this.#totals().refusedRows;
  }

  /** Rejects after `stop` and when the store is sealed. */
  async load(): Promise<void> {
    for (let pauseMs = FIRST_RETRY_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_RETRY_MS)) {
      try {
        return await this.refresh();
      } catch (error) {
        if (!(error instanceof SignerError && PASSING.has(error.reason))) throw error;
      }
      await pause(pauseMs, undefined, { signal: this.#stop.signal });
    }
  }

  async keepRefreshing(): Promise<void> {
    const { signal } = this.#stop;
    const intervalMs = this.#options.refreshIntervalSeconds * 1000;
    if (intervalMs === 0) return;
    while (!signal.aborted) {
      const waited = pause(jitteredInterval(intervalMs), true, { signal, ref: false });
      if (!(await waited.catch(() => false))) return;
      await this.refresh().catch(() => undefined); // said and counted where it failed
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort(new SignerError('shutting_down'));
    await this.#inTurn(() => Promise.resolve());
  }

  withhold(publicKeys: readonly string[]): () => void {
    return this.#withheld.withhold(publicKeys);
  }

  hasRow(publicKey: string): boolean {
    return this.#shards[shardOf(publicKey)]?.present.has(publicKey) === true;
  }

  /** A look that begins after the call; callers that wait for the same one share it. */
  readonly refresh = sharedTurns(() => this.#lookNow(), this.#inTurn);

  async #lookNow(): Promise<void> {
    const { clock, log, onLookFailed } = this.#parts;
    const startedAt = clock.monotonic();
    try {
      this.#stop.signal.throwIfAborted();
      this.#withheld.beginLook();
      await this.#readWhatMoved(startedAt);
    } catch (error) {
      if (this.#stop.signal.aborted || this.#parts.store.state === 'sealed') throw error;
      this.#failures += 1;
      onLookFailed?.();
      const { message, detail } = error as { message?: unknown; detail?: unknown };
      log.warn({ failures: this.#failures, error: message, detail }, 'the key table could not be read');
      throw error;
    }
    if (this.#failures > 0) log.info({ failures: this.#failures }, 'the key table is read again');
    this.#failures = 0;
    const isFirst = this.#lastLookAt === undefined;
    this.#lastLookAt = startedAt;
    if (!isFirst) await this.#renewTenures();
  }

  async #readWhatMoved(startedAt: number): Promise<void> {
    const { store, clock, onLoaded } = this.#parts;
    const revisions = await readRevisions(this.#parts);
    const moved = SHARDS.filter((shard) => this.#shards[shard]?.revision !== revisions[shard]);
    if (moved.length === 0) return;
    // A shard that cannot be read must not keep the others from losing a key.
    const problems: unknown[] = [];
    const reads = new Map<number, ShardRead>();
    await store.batch((batch) =>
      inParallel(moved, this.#options.maxConcurrentReads, async (shard) => {
        try {
          reads.set(shard, await this.#readShard(shard, this.#revisionOf(shard, revisions[shard] ?? 0), batch));
        } catch (error) {
          problems.push(error);
        }
      }),
    );
    for (const [shard, read] of reads) {
      this.#finishShard(shard, revisions[shard] ?? 0, read);
      for (const publicKey of read.present) if (this.#isActiveRow(publicKey)) this.#found.add(publicKey);
      await nextTurn(); // thousands of keys a shard
    }
    if (problems.length > 0) throw problems[0];
    onLoaded?.({ ...this.#totals(), shardsRead: moved.length, seconds: (clock.monotonic() - startedAt) / 1000 });
  }

  /** The rows of these keys were just found active. */
  async #renewTenures(): Promise<void> {
    const { store, log } = this.#parts;
    for (const publicKey of store.takeRefused('dynamodb')) this.#found.add(publicKey);
    // Some may be of a look before whose renewal failed.
    const found = [...this.#found].filter((publicKey) => this.#isActiveRow(publicKey));
    this.#found = new Set();
    try {
      for (const some of chunks(found, TENURES_AT_ONCE)) await store.renewTenures(some);
    } catch (error) {
      this.#found = new Set(found);
      log.warn({ err: error, keys: found.length }, 'the tenures of keys could not be read: the next look tries again');
    }
  }

  /** An inactive one takes no later tenure. */
  #isActiveRow(publicKey: string): boolean {
    const { present, inactive } = this.#shards[shardOf(publicKey)] ?? UNREAD;
    const isLoaded = this.#parts.store.find(publicKey)?.source === 'dynamodb';
    return isLoaded && present.has(publicKey) && !inactive.has(publicKey);
  }

  #revisionOf(shard: number, read: number): number {
    const known = this.#parts.freshness.ofShard(shard).revision ?? 0;
    if (read < known)
      this.#parts.log.error({ shard, revision: read, was: known }, 'a shard of the key table went back');
    return Math.max(read, known);
  }

  #finishShard(shard: number, revision: number, read: ShardRead): void {
    const { freshness, log } = this.#parts;
    const seen = freshness.ofShard(shard);
    seen.completeRead(Math.max(revision, seen.revision ?? 0), read.present);
    const before = this.#shards[shard]?.refused;
    for (const [key, reason] of read.refused) {
      if (before?.get(key) !== reason)
        log.error({ public_key: key, reason, shard }, 'a row of the key table is refused');
    }
    const releasedHere = this.#withheld.releasedMeanwhile().some((key) => shardOf(key) === shard);
    this.#setShard(shard, { ...read, revision: releasedHere ? undefined : revision });
  }

  #setShard(shard: number, change: Partial<ShardState>): void {
    this.#shards[shard] = { ...(this.#shards[shard] ?? UNREAD), ...change };
  }

  #totals(): Pick<TableLoad, 'refusedRows' | 'keys'> {
    const keys = { active: 0, inactive: 0 };
    let refusedRows = 0;
    for (const { counts, refused } of this.#shards) {
      keys.active += counts.active;
      keys.inactive += counts.inactive;
      refusedRows += refused.size;
    }
    return { refusedRows, keys };
  }
}

class WithheldKeys {
  readonly #onReleased: (publicKey: string) => void;
  readonly #counts = new Map<string, number>();
  /** Released since the look under way began: as good as withheld until it ends. */
  readonly #releasedMeanwhile = new Set<string>();

  constructor(onReleased: (publicKey: string) => void) {
    this.#onReleased = onReleased;
  }

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
