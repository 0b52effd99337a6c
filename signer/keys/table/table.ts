// The key table as key management sees it. It believes only rows encrypted under this master key and not older than
// what this process has seen.

import { strict as assert } from 'node:assert';
import { oneAfterTheOther } from '../../../common/flow/turns.ts';
import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { SignerError } from '../../api/errors.ts';
import { type Item, MAX_BATCH_GET_ITEMS } from '../../aws/dynamodb.ts';
import { chunks } from '../../parallel.ts';
import { readItems, readRowsPage, type TableConnection } from './calls.ts';
import { changeShard, MAX_KEYS_PER_CHANGE, type Planned, type RowPlan } from './change.ts';
import type { TableFreshness } from './freshness.ts';
import type { KeyCipher } from './key-cipher.ts';
import { decodeRow, digestOfDetails, keyOfRow, SHARDS, shardOf, type TableRow } from './rows.ts';
import type { KeyTable, NewTableKey, StoredDeposit, TableKey } from './types.ts';

export interface KeyTableParts extends TableConnection {
  readonly keyCipher: KeyCipher;
  readonly freshness: TableFreshness;
  readonly clock: Clock;
  readonly log: Log;
}

const MAX_LIST_LIMIT = 1000;
const LIST_PAGE_ROWS = 250;

export function openKeyTable(parts: KeyTableParts): KeyTable {
  const rows = rowReader(parts);
  const change = shardChanger(parts);
  const now = () => new Date(parts.clock.now()).toISOString();
  const reseal = (row: TableRow, changes: Partial<TableRow>, generation: number): TableRow | undefined => {
    const secretKey = parts.keyCipher.decrypt(row);
    if (secretKey === undefined) return undefined;
    try {
      const { backup, deposit } = { ...row, ...changes };
      const detailsDigest = digestOfDetails(backup, deposit);
      return parts.keyCipher.encrypt({ ...row, ...changes, detailsDigest, generation, updatedAt: now() }, secretKey);
    } finally {
      secretKey.fill(0);
    }
  };

  return {
    list: (options) => listKeys(parts, rows.accept, options),

    async get(publicKeys) {
      const found = await rows.read(publicKeys);
      return new Map([...found].map(([publicKey, row]) => [publicKey, tableKeyOf(row)]));
    },

    existing: async (publicKeys) => new Set((await rows.items(publicKeys)).map((item) => item['sk']?.S ?? '')),

    create(keys) {
      const byPublicKey = new Map(keys.map((key) => [key.publicKey, key]));
      assert.equal(byPublicKey.size, keys.length, 'a key is created once');
      return change([...byPublicKey.keys()], (publicKey, item, generation) => {
        if (item !== undefined) return { outcome: 'duplicate', row: 'kept' };
        const key = byPublicKey.get(publicKey);
        assert(key !== undefined);
        return { outcome: 'created', row: parts.keyCipher.encrypt(newRow(key, generation, now()), key.secretKey) };
      });
    },

    setStatus(changes) {
      const wanted = new Map(changes.map(({ publicKey, status }) => [publicKey, status]));
      return change([...wanted.keys()], (publicKey, item, generation) => {
        const row = item === undefined ? undefined : rows.accept(item);
        const status = wanted.get(publicKey);
        if (row === undefined || status === undefined) return { outcome: 'not_found', row: 'kept' };
        if (row.status === status) return { outcome: 'unchanged', row: 'kept' };
        return orNotFound('updated', reseal(row, { status }, generation));
      });
    },

    async setDeposit(publicKey, deposit, { replace }) {
      const text = JSON.stringify(deposit);
      const outcomes = await change<DepositOutcome>([publicKey], (_, item, generation) => {
        const row = item === undefined ? undefined : rows.accept(item);
        if (row === undefined) return { outcome: 'not_found', row: 'kept' };
        if (row.deposit === text) return { outcome: 'existing', row: 'kept' };
        if (row.deposit !== undefined && !replace) return { outcome: 'conflict', row: 'kept' };
        return orNotFound('created', reseal(row, { deposit: text }, generation));
      });
      return outcomes.get(publicKey) ?? 'not_found';
    },

    delete: (publicKeys) =>
      change([...new Set(publicKeys)], (_, item) =>
        item === undefined ? { outcome: 'not_found', row: 'kept' } : { outcome: 'deleted', row: 'removed' },
      ),

    async backupsOf(publicKeys) {
      const found = await rows.read(publicKeys);
      return new Map([...found].map(([publicKey, { backup }]) => [publicKey, backup]));
    },

    async secretOf(publicKey) {
      const row = (await rows.read([publicKey])).get(publicKey);
      return row === undefined ? undefined : parts.keyCipher.decrypt(row);
    },
  };
}

type DepositOutcome = Awaited<ReturnType<KeyTable['setDeposit']>>;

function orNotFound<Outcome>(outcome: Outcome, row: TableRow | undefined): Planned<Outcome | 'not_found'> {
  return row === undefined ? { outcome: 'not_found', row: 'kept' } : { outcome, row };
}

function newRow({ publicKey, status, backup, deposit }: NewTableKey, generation: number, now: string) {
  const depositText = deposit === undefined ? undefined : JSON.stringify(deposit);
  const detailsDigest = digestOfDetails(backup, depositText);
  return { publicKey, status, generation, createdAt: now, updatedAt: now, detailsDigest, backup, deposit: depositText };
}

/** Undefined for a row that is not ours, or older than what was seen. */
function rowReader(parts: KeyTableParts) {
  const { keyCipher, freshness, log } = parts;
  const refuse = (key: string, reason: string): undefined => {
    log.error({ public_key: key, reason }, 'a row of the key table is refused');
  };

  const verify = (item: Item): TableRow | undefined => {
    const decoded = decodeRow(item);
    if ('refused' in decoded) return refuse(decoded.publicKey, decoded.refused);
    const { row } = decoded;
    const secretKey = keyCipher.decrypt(row);
    if (secretKey === undefined) return refuse(row.publicKey, 'not sealed under this master key as it is');
    secretKey.fill(0);
    const isWhole = row.detailsDigest.equals(digestOfDetails(row.backup, row.deposit));
    return isWhole ? row : refuse(row.publicKey, 'its backup or deposit data is not what was written');
  };
  const accept = (item: Item): TableRow | undefined => {
    const row = verify(item);
    if (row === undefined || freshness.isFresh(row.publicKey, row.generation)) return row;
    return refuse(row.publicKey, 'older than what was seen before');
  };

  async function read(publicKeys: readonly string[]): Promise<ReadonlyMap<string, TableRow>> {
    const rows = new Map<string, TableRow>();
    for (const item of await items(publicKeys)) {
      const row = accept(item);
      if (row !== undefined) rows.set(row.publicKey, row);
    }
    return rows;
  }

  async function items(publicKeys: readonly string[]): Promise<Item[]> {
    const found: Item[] = [];
    for (const keys of chunks([...new Set(publicKeys)], MAX_BATCH_GET_ITEMS)) {
      found.push(...(await readItems(parts, keys.map(keyOfRow))));
    }
    return found;
  }
  return { accept, read, items };
}

function shardChanger(parts: KeyTableParts) {
  const turns = SHARDS.map(() => oneAfterTheOther());

  return async <Outcome>(publicKeys: readonly string[], plan: RowPlan<Outcome>): Promise<Map<string, Outcome>> => {
    const { freshness } = parts;
    const byShard = Map.groupBy(publicKeys, shardOf);
    const outcomes = new Map<string, Outcome>();
    const changes = [...byShard].flatMap(([shard, keys]) =>
      chunks(keys, MAX_KEYS_PER_CHANGE).map((chunk) =>
        turns[shard]?.(async () => {
          const lowestGeneration = (freshness.ofShard(shard).revision ?? 0) + 1;
          const { planned, generation } = await changeShard(parts, { shard, lowestGeneration }, chunk, plan);
          for (const [publicKey, { outcome, row }] of planned) {
            outcomes.set(publicKey, outcome);
            if (row !== 'kept') freshness.note(publicKey, generation);
          }
        }),
      ),
    );
    const failed = (await Promise.allSettled(changes)).find((change) => change.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    return outcomes;
  };
}

async function listKeys(
  parts: KeyTableParts,
  accept: (item: Item) => TableRow | undefined,
  { status, limit, cursor }: Parameters<KeyTable['list']>[0],
): ReturnType<KeyTable['list']> {
  assert(limit >= 1 && limit <= MAX_LIST_LIMIT);
  const keys: TableKey[] = [];
  let { shard, after } = placeOf(cursor);
  while (shard < SHARDS.length) {
    const page = await readRowsPage(parts, shard, {
      after,
      status,
      limit: Math.min(LIST_PAGE_ROWS, limit - keys.length),
    });
    for (const item of page.items) {
      const row = accept(item);
      if (row !== undefined) keys.push(tableKeyOf(row));
    }
    if (page.next === undefined) shard += 1;
    after = page.next;
    if (keys.length >= limit) break;
  }
  return { keys, nextCursor: shard < SHARDS.length ? `${shard}.${after ?? ''}` : undefined };
}

function placeOf(cursor: string | undefined): { shard: number; after: string | undefined } {
  if (cursor === undefined) return { shard: 0, after: undefined };
  const [, shard, after] = /^(\d|1[0-5])\.(0x[0-9a-f]{96})?$/.exec(cursor) ?? [];
  if (shard === undefined) throw new SignerError('malformed_parameter', { detail: { problem: 'not a cursor' } });
  return { shard: Number(shard), after };
}

function tableKeyOf({ publicKey, status, generation, createdAt, updatedAt, backup, deposit }: TableRow): TableKey {
  return {
    publicKey,
    status,
    generation,
    createdAt,
    updatedAt,
    hasBackup: backup !== undefined,
    // Authenticated by the digest of the row: it is what this signer wrote.
    deposit: deposit === undefined ? undefined : (JSON.parse(deposit) as StoredDeposit),
  };
}
