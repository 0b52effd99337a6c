// Reads one shard of the key table into a batch of the KeyStore: adds what is ours, fresh and wanted, removes what is
// not there or not wanted any more, and says why each other row is refused. It looks at rows in small slices, one shard
// at a time, because adding a key takes 0.1 ms of the thread that signatures pass through.

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../../../observe/clock.ts';
import type { Log } from '../../../observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import type { KeyBatch, KeyRefusal, KeyStore } from '../store.ts';
import { readPage, type TableConnection } from './calls.ts';
import type { TableFreshness } from './freshness.ts';
import { decodeRow, type Item, LOAD_PROJECTION, type TableRow } from './rows.ts';
import type { KeySealer } from './seal.ts';
import type { KeyStatus } from './types.ts';

export interface ShardReaderParts extends TableConnection {
  readonly store: Pick<KeyStore, 'find'>;
  readonly sealer: KeySealer;
  readonly freshness: TableFreshness;
  readonly statusFilter: ReadonlySet<KeyStatus>;
  readonly clock: Clock;
  /** Keys that nobody may load now. */
  readonly isWithheld: (publicKey: string) => boolean;
  readonly log: Log;
  /** Ends the reading when aborted. */
  readonly signal: AbortSignal;
}

export interface ShardRead {
  /** Rows that are good, by status, without those whose key signs from another source. */
  readonly counts: Readonly<Record<KeyStatus, number>>;
  /** Why each refused row is refused, by sort key. */
  readonly refused: ReadonlyMap<string, string>;
  /** Every sort key that was there. */
  readonly present: ReadonlySet<string>;
}

/** Rows of one Query: few enough that taking its answer apart does not hold up signing. */
const PAGE_ROWS = 50;
/** How long the main thread works at once; then everything else has its turn. */
const SLICE_MS = 4;

const ADD_REFUSALS = {
  invalid_secret_key: 'the secret is zero or not below the group order',
  public_key_mismatch: 'the secret does not belong to the public key',
  too_many_keys: 'as many keys are loaded as the signer holds',
} as const satisfies Record<Exclude<KeyRefusal, 'sealed'>, string>;

/** @param revision read before; rows may be newer. */
export type ReadShard = (shard: number, revision: number, batch: KeyBatch) => Promise<ShardRead>;

export function shardReader(parts: ShardReaderParts): ReadShard {
  const inSlices = slices(parts.clock);
  return async (shard, revision, batch) => {
    const reading = startReading(parts, revision, batch);
    let after: string | undefined;
    do {
      const page = await readPage(parts, shard, { after, limit: PAGE_ROWS, projection: LOAD_PROJECTION });
      await inSlices(page.items, (item) => {
        parts.signal.throwIfAborted();
        reading.take(item);
      });
      after = page.next;
    } while (after !== undefined);
    await inSlices([...parts.freshness.keysOf(shard)], reading.removeUnlessWanted);
    return reading;
  };
}

function startReading(parts: ShardReaderParts, revision: number, batch: KeyBatch) {
  const { store, sealer, freshness, statusFilter, log } = parts;
  const counts: Record<KeyStatus, number> = { active: 0, inactive: 0 };
  const refused = new Map<string, string>();
  const present = new Set<string>();
  /** What stays loaded, or comes. */
  const wanted = new Set<string>();
  /**
   * No copy of these signs here, but one of a file: that is not the table's to stop (specification/keys.md#sources).
   */
  const inactive = new Set<string>();

  const load = (row: TableRow, secretKey: Buffer): string | undefined => {
    const { publicKey } = row;
    wanted.add(publicKey);
    if (parts.isWithheld(publicKey)) return undefined;
    const isFirstSight = freshness.generation(publicKey) === undefined;
    const loaded = store.find(publicKey);
    if (loaded !== undefined) {
      if (isFirstSight && loaded.source !== 'dynamodb') {
        log.warn({ public_key: publicKey, source: loaded.source }, 'a key of the table is loaded from another source');
      }
      return undefined;
    }
    const added = batch.add(secretKey, 'dynamodb', publicKey);
    if (added.outcome !== 'refused') return undefined;
    if (added.reason === 'sealed') throw new SignerError('sealed');
    wanted.delete(publicKey);
    return ADD_REFUSALS[added.reason];
  };

  const deactivate = ({ publicKey, generation }: TableRow): void => {
    inactive.add(publicKey);
    const isNews = freshness.generation(publicKey) !== generation;
    if (!isNews || store.find(publicKey)?.source !== 'filesystem') return;
    log.warn({ public_key: publicKey }, 'a key that is inactive in the table signs: a key file has it');
  };

  /** Why the row is refused, or undefined. */
  const judge = (item: Item): string | undefined => {
    const decoded = decodeRow(item);
    if ('refused' in decoded) return decoded.refused;
    const { row } = decoded;
    const secretKey = sealer.open(row);
    if (secretKey === undefined) return 'not sealed under this master key as it is';
    try {
      const { publicKey, status, generation } = row;
      if (!freshness.isFresh(publicKey, generation)) {
        // This process has changed the row since it was read here: the next look will see.
        if (isNewer(publicKey)) return void wanted.add(publicKey);
        return 'older than what was seen before';
      }
      const isLoaded = statusFilter.has(status);
      if (!isLoaded && status === 'inactive') deactivate(row);
      const refusal = isLoaded ? load(row, secretKey) : undefined;
      freshness.note(publicKey, generation);
      // A key that signs from another source is counted there; a copy in memory of an inactive row ends with this look.
      const source = store.find(publicKey)?.source ?? 'dynamodb';
      const countsElsewhere = source === 'filesystem' || (source === 'memory' && !inactive.has(publicKey));
      if (refusal === undefined && !countsElsewhere) counts[status] += 1;
      return refusal;
    } finally {
      secretKey.fill(0);
    }
  };
  const isNewer = (publicKey: string) => (freshness.generation(publicKey) ?? 0) > revision;

  return {
    counts,
    refused,
    present,
    take(item: Item): void {
      const sortKey = item['sk']?.S ?? '';
      present.add(sortKey);
      const refusal = judge(item);
      if (refusal !== undefined) refused.set(sortKey, refusal);
    },
    /** A key whose row is gone, refused, or of a status that is not loaded stops signing. */
    removeUnlessWanted(publicKey: string): void {
      if (wanted.has(publicKey)) return;
      if (!present.has(publicKey) && isNewer(publicKey)) return;
      const source = store.find(publicKey)?.source;
      if (source === 'dynamodb' || (source === 'memory' && inactive.has(publicKey))) batch.remove(publicKey);
    },
  };
}

/** Work on many things, from any number of callers, never longer than SLICE_MS without a turn for everything else. */
function slices(clock: Clock) {
  let tail: Promise<void> = Promise.resolve();
  return <T>(things: readonly T[], work: (thing: T) => void): Promise<void> => {
    const turn = tail.then(async () => {
      await nextTurn();
      let startedAt = clock.monotonic();
      for (const thing of things) {
        work(thing);
        if (clock.monotonic() - startedAt < SLICE_MS) continue;
        await nextTurn();
        startedAt = clock.monotonic();
      }
    });
    tail = turn.catch(() => undefined);
    return turn;
  };
}
