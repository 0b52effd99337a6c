// Reads one shard into a batch of the KeyStore, and says why a row is refused. It works in small slices, on the thread
// that signatures pass through.

import { strict as assert } from 'node:assert';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { oneAfterTheOther } from '../../../common/flow/turns.ts';
import type { Clock } from '../../../common/observe/clock.ts';
import { SignerError } from '../../api/errors.ts';
import type { Item } from '../../aws/dynamodb.ts';
import { type KeyRefusal, SHARE_REFUSALS } from '../loaded-key.ts';
import type { KeyBatch, KeyStore } from '../store.ts';
import { type HeldKey, SECRET_KEY_BYTES } from '../vault.ts';
import { readRowsPage } from './calls.ts';
import type { KeyCipher } from './key-cipher.ts';
import { decodeRow, LOAD_PROJECTION, shardPartition, type TableRow } from './rows.ts';
import type { KeyTableParts } from './table.ts';
import type { KeyStatus } from './types.ts';

interface ShardReaderParts extends KeyTableParts {
  readonly store: Pick<KeyStore, 'find' | 'retire'>;
  readonly statusFilter: ReadonlySet<KeyStatus>;
  readonly isWithheld: (publicKey: string) => boolean;
  readonly signal: AbortSignal;
}

export interface ShardRead {
  /** Rows that are good, by status, without those whose key signs from another source. */
  readonly counts: Readonly<Record<KeyStatus, number>>;
  readonly refused: ReadonlyMap<string, string>;
  readonly present: ReadonlySet<string>;
  /** Of those, the keys whose rows are good and say so. */
  readonly inactive: ReadonlySet<string>;
}

/** Few enough that taking an answer apart does not hold up signing. */
const PAGE_ROWS = 250;
const SLICE_MS = 4;

const ADD_REFUSALS = {
  invalid_secret_key: 'the secret is zero or not below the group order',
  public_key_mismatch: 'the secret does not belong to the public key',
  too_many_keys: 'as many keys are loaded as the signer holds',
  ...SHARE_REFUSALS,
} as const satisfies Record<Exclude<KeyRefusal, 'sealed'>, string>;

export type ReadShard = (shard: number, revision: number, batch: KeyBatch) => Promise<ShardRead>;

export function shardReader(parts: ShardReaderParts): ReadShard {
  const inSlices = slices(parts.clock);
  return async (shard, revision, batch) => {
    const reading = startReading(parts, { shard, revision, batch });
    let after: string | undefined;
    do {
      const page = await readRowsPage(parts, shard, { after, limit: PAGE_ROWS, projection: LOAD_PROJECTION });
      const rows: TableRow[] = [];
      const held = await holding(batch, page.items.length, (secretKeys) =>
        inSlices(page.items, (item) => {
          parts.signal.throwIfAborted();
          const at = rows.length * SECRET_KEY_BYTES;
          const row = reading.take(item, secretKeys.subarray(at, at + SECRET_KEY_BYTES));
          if (row !== undefined) rows.push(row);
        }).then(() => rows.length),
      );
      let next = 0;
      try {
        await inSlices(rows, (row) => {
          parts.signal.throwIfAborted();
          reading.conclude(row, { held: held[next++] });
        });
      } finally {
        for (const left of held.slice(next)) batch.letGo(left);
      }
      after = page.next;
    } while (after !== undefined);
    await inSlices([...parts.freshness.ofShard(shard).keys()], reading.removeUnlessWanted);
    return reading;
  };
}

/** The secrets that `fill` has put there are wiped, whatever happens. */
async function holding(
  batch: KeyBatch,
  most: number,
  fill: (secretKeys: Buffer) => Promise<number>,
): Promise<readonly (HeldKey | undefined)[]> {
  const secretKeys = Buffer.alloc(most * SECRET_KEY_BYTES);
  let held: Promise<readonly (HeldKey | undefined)[]> | undefined;
  try {
    const count = await fill(secretKeys);
    if (count > 0) held = batch.hold(secretKeys.subarray(0, count * SECRET_KEY_BYTES));
  } finally {
    secretKeys.fill(0);
  }
  return (await held) ?? [];
}

interface Reading {
  readonly shard: number;
  readonly revision: number;
  readonly batch: KeyBatch;
}

interface NewKey {
  readonly held: HeldKey | undefined;
}

function startReading(parts: ShardReaderParts, { shard, revision, batch }: Reading) {
  const { store, keyCipher, statusFilter, log, isWithheld } = parts;
  const seen = parts.freshness.ofShard(shard);
  const counts: Record<KeyStatus, number> = { active: 0, inactive: 0 };
  const refused = new Map<string, string>();
  const present = new Set<string>();
  const wanted = new Set<string>();
  /** A copy of a file is not the table's to stop (specification/keys.md#sources). */
  const inactive = new Set<string>();

  const isNewer = (publicKey: string) => (seen.generation(publicKey) ?? 0) > revision;

  const needsKey = ({ publicKey, status, generation }: TableRow): boolean =>
    statusFilter.has(status) &&
    store.find(publicKey) === undefined &&
    !isWithheld(publicKey) &&
    seen.isFresh(publicKey, generation);

  const load = ({ publicKey }: TableRow, newKey: NewKey | undefined): string | undefined => {
    wanted.add(publicKey);
    const loaded = store.find(publicKey);
    if (isWithheld(publicKey) || loaded !== undefined) {
      batch.letGo(newKey?.held);
      const isFirstSight = seen.generation(publicKey) === undefined;
      if (!isWithheld(publicKey) && isFirstSight && loaded?.source !== 'dynamodb') {
        log.warn({ public_key: publicKey, source: loaded?.source }, 'a key of the table is loaded from another source');
      }
      return undefined;
    }
    assert(newKey !== undefined, 'a row that needs its key is judged with it');
    const added = batch.addHeld(newKey.held, 'dynamodb', publicKey);
    if (added.outcome !== 'refused') return undefined;
    if (added.reason === 'sealed') throw new SignerError('sealed');
    wanted.delete(publicKey);
    return ADD_REFUSALS[added.reason];
  };

  const deactivate = ({ publicKey, generation }: TableRow): void => {
    inactive.add(publicKey);
    const isNews = seen.generation(publicKey) !== generation;
    if (!isNews || store.find(publicKey)?.source !== 'filesystem') return;
    log.warn({ public_key: publicKey }, 'a key that is inactive in the table signs: a key file has it');
  };

  const judge = (row: TableRow, newKey: NewKey | undefined): string | undefined => {
    const { publicKey, status, generation } = row;
    const isLoaded = statusFilter.has(status);
    const isFresh = seen.isFresh(publicKey, generation);
    if (!isLoaded || !isFresh) batch.letGo(newKey?.held);
    // This process has changed the row since it was read here: the next look will see.
    if (!isFresh && isNewer(publicKey)) return void wanted.add(publicKey);
    if (!isFresh) return 'older than what was seen before';
    if (status === 'inactive') deactivate(row);
    const refusal = isLoaded ? load(row, newKey) : undefined;
    // Loaded or not, it signs nothing: what another signer made inactive stands above the filter of this one.
    if (status === 'inactive' && store.find(publicKey)?.source === 'dynamodb') store.retire(publicKey);
    seen.note(publicKey, generation);
    // A key that signs from another source is counted there; a copy in memory of an inactive row ends with this look.
    const source = store.find(publicKey)?.source ?? 'dynamodb';
    const countsElsewhere = source === 'filesystem' || (source === 'memory' && !inactive.has(publicKey));
    if (refusal === undefined && !countsElsewhere) counts[status] += 1;
    return refusal;
  };

  const conclude = (row: TableRow, newKey?: NewKey): void => {
    const refusal = judge(row, newKey);
    if (refusal !== undefined) refused.set(row.publicKey, refusal);
  };

  return {
    counts,
    refused,
    present,
    inactive,
    conclude,
    /** The row, and its secret in `place`, when `conclude` is to be told what became of it. */
    take(item: Item, place: Buffer): TableRow | undefined {
      const sortKey = item['sk']?.S ?? '';
      present.add(sortKey);
      const opened = openRow(item, shard, keyCipher);
      if ('refused' in opened) return void refused.set(sortKey, opened.refused);
      try {
        if (!needsKey(opened.row)) return void conclude(opened.row);
        opened.secretKey.copy(place);
        return opened.row;
      } finally {
        opened.secretKey.fill(0);
      }
    },
    removeUnlessWanted(publicKey: string): void {
      const source = store.find(publicKey)?.source;
      if (source === 'memory' && inactive.has(publicKey)) batch.remove(publicKey);
      if (wanted.has(publicKey)) return;
      if (!present.has(publicKey) && isNewer(publicKey)) return;
      if (source === 'dynamodb') batch.remove(publicKey);
    },
  };
}

function openRow(
  item: Item,
  shard: number,
  keyCipher: KeyCipher,
): { readonly row: TableRow; readonly secretKey: Buffer } | { readonly refused: string } {
  const decoded = decodeRow(item);
  if ('refused' in decoded) return decoded;
  const { row } = decoded;
  if (item['pk']?.S !== shardPartition(shard)) return { refused: 'in the answer for another shard' };
  const secretKey = keyCipher.decrypt(row);
  return secretKey === undefined ? { refused: 'not sealed under this master key as it is' } : { row, secretKey };
}

function slices(clock: Clock) {
  const inTurn = oneAfterTheOther();
  return <T>(things: readonly T[], work: (thing: T) => void): Promise<void> =>
    inTurn(async () => {
      await nextTurn();
      let startedAt = clock.monotonic();
      for (const thing of things) {
        work(thing);
        if (clock.monotonic() - startedAt < SLICE_MS) continue;
        await nextTurn();
        startedAt = clock.monotonic();
      }
    });
}
