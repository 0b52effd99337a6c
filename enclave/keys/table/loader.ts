// Keeps the KeyStore like the key table: a first load of every shard, then a look at 16 revision rows every interval
// and a read of the shards that moved. A row that fails is counted, logged and not loaded, and disturbs no other. A
// look that fails keeps the loaded set, is logged and counted, and the next one tries again what it could not read.

import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises';
import type { Clock } from '../../../observe/clock.ts';
import type { Log } from '../../../observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { inParallel } from '../../parallel.ts';
import type { KeyStore } from '../store.ts';
import { readRevisions, type TableConnection } from './calls.ts';
import type { TableFreshness } from './freshness.ts';
import { SHARDS, shardOf } from './rows.ts';
import type { KeySealer } from './seal.ts';
import { type ReadShard, type ShardRead, shardReader } from './shard.ts';
import type { KeyStatus, KeyTableLoader } from './types.ts';
import { WithheldKeys } from './withheld.ts';

export interface TableLoaderOptions {
  /** `key_sources.dynamodb.status_filter` */
  readonly statusFilter: readonly KeyStatus[];
  /** `key_sources.dynamodb.refresh_interval_seconds`; 0: never again after the first load. */
  readonly refreshIntervalSeconds: number;
  /** `key_sources.dynamodb.max_concurrent_reads`: shards read at once. */
  readonly maxConcurrentReads: number;
}

export interface TableLoaderParts extends TableConnection {
  readonly store: KeyStore;
  readonly sealer: KeySealer;
  readonly freshness: TableFreshness;
  readonly clock: Clock;
  readonly log: Log;
  /** After every look that read a shard. */
  readonly onLoaded?: ((load: TableLoad) => void) | undefined;
  readonly onLookFailed?: (() => void) | undefined;
}

export interface TableLoad {
  /** Rows refused now, in all shards. */
  readonly refusedRows: number;
  /** Rows that are good, by status, in all shards; without those whose key another source has loaded. */
  readonly keys: Readonly<Record<KeyStatus, number>>;
  readonly shardsRead: number;
  readonly seconds: number;
}

/** The table is out of reach, or a signing worker ended with the keys that were on their way. */
const PASSING: ReadonlySet<string> = new Set(['key_table_unavailable', 'signing_unavailable']);

/** Pauses after failed first loads, doubled each time. */
const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** No complete look for max(5 intervals, 10 s) is stale, as for the state table. */
const STALE_INTERVALS = 5;
const STALE_AT_LEAST_SECONDS = 10;

/** One shard; `revision` is the one read before the last complete read, and undefined asks for a read. */
type ShardState = ShardRead & { readonly revision: number | undefined };

const UNREAD: ShardState = {
  revision: undefined,
  counts: { active: 0, inactive: 0 },
  refused: new Map(),
  present: new Set(),
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
  #look: Promise<void> = Promise.resolve();
  #nextLook: Promise<void> | undefined;
  #lastLookAt: number | undefined;
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

  /** Whether the table was out of sight for so long that keys made inactive elsewhere may still sign here. */
  get stale(): boolean {
    const { refreshIntervalSeconds } = this.#options;
    if (refreshIntervalSeconds === 0 || this.#lastLookAt === undefined) return false;
    const ageSeconds = (this.#parts.clock.monotonic() - this.#lastLookAt) / 1000;
    return ageSeconds > Math.max(STALE_INTERVALS * refreshIntervalSeconds, STALE_AT_LEAST_SECONDS);
  }

  /** Good rows by status; none once the store is sealed, and nobody can say what they are. */
  get rows(): Readonly<Record<KeyStatus, number>> {
    return this.#parts.store.state === 'sealed' ? { active: 0, inactive: 0 } : this.#totals().keys;
  }

  /** Rows that the last looks refused. */
  get refusedRows(): number {
    return this.#totals().refusedRows;
  }

  /** The first load, tried again until it is complete. Rejects after `stop` and when the store is sealed. */
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

  /** Look every interval until `stop`. */
  async keepRefreshing(): Promise<void> {
    const { signal } = this.#stop;
    const intervalMs = this.#options.refreshIntervalSeconds * 1000;
    if (intervalMs === 0) return;
    while (!signal.aborted) {
      // Jitter keeps replicas that started together from reading together.
      const waited = pause(intervalMs * (0.9 + Math.random() / 10), true, { signal, ref: false });
      if (!(await waited.catch(() => false))) return;
      await this.refresh().catch(() => undefined); // said and counted where it failed
    }
  }

  /** Resolves when no look is under way any more; none begins. */
  async stop(): Promise<void> {
    this.#stop.abort(new SignerError('shutting_down'));
    await this.#look.catch(() => undefined);
  }

  withhold(publicKeys: readonly string[]): () => void {
    return this.#withheld.withhold(publicKeys);
  }

  hasRow(publicKey: string): boolean {
    return this.#shards[shardOf(publicKey)]?.present.has(publicKey) === true;
  }

  /** A look that begins after the call; callers that wait for the same one share it. */
  refresh(): Promise<void> {
    this.#nextLook ??= this.#look
      .catch(() => undefined)
      .then(() => {
        this.#nextLook = undefined;
        this.#look = this.#lookNow();
        return this.#look;
      });
    return this.#nextLook;
  }

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
    this.#lastLookAt = startedAt;
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
      await nextTurn(); // thousands of keys a shard
    }
    if (problems.length > 0) throw problems[0];
    onLoaded?.({ ...this.#totals(), shardsRead: moved.length, seconds: (clock.monotonic() - startedAt) / 1000 });
  }

  /** A revision never goes back: not even when the table says so. */
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
