// A change starts again when another writer was faster; one whose answer was lost is recognised in the table.

import { setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../../common/flow/backoff.ts';
import { SignerError } from '../../api/errors.ts';
import type { Item, TransactWriteItem } from '../../aws/dynamodb.ts';
import { readItems, type TableConnection, transact } from './calls.ts';
import { encodeRow, keyOfRevision, keyOfRow, revisionIn, type TableRow } from './rows.ts';

export const MAX_KEYS_PER_CHANGE = 50;
const MAX_ATTEMPTS = 12;
const RETRY_PAUSE_MS = 20;

export type Planned<Outcome> = { readonly outcome: Outcome; readonly row: TableRow | 'removed' | 'kept' };

/** Asked again in every attempt. @param generation of the rows it encrypts */
export type RowPlan<Outcome> = (publicKey: string, item: Item | undefined, generation: number) => Planned<Outcome>;

interface KeyRowsChange<Outcome> {
  readonly planned: ReadonlyMap<string, Planned<Outcome>>;
  readonly generation: number;
}

/** @param lowestGeneration above every revision seen, so that no generation is given twice */
export async function changeShard<Outcome>(
  connection: TableConnection,
  { shard, lowestGeneration }: { readonly shard: number; readonly lowestGeneration: number },
  publicKeys: readonly string[],
  plan: RowPlan<Outcome>,
): Promise<KeyRowsChange<Outcome>> {
  let lastTry: KeyRowsChange<Outcome> | undefined;
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    if (attempt > 1) await pause(jittered(RETRY_PAUSE_MS * attempt));
    const revisionKey = keyOfRevision(shard);
    const found = await readItems(connection, [revisionKey, ...publicKeys.map(keyOfRow)]);
    const items = new Map(found.map((item) => [item['sk']?.S ?? '', item]));
    if (lastTry !== undefined && wasWritten(lastTry, items)) return lastTry;
    const revision = items.get(revisionKey['sk']?.S ?? '');
    const generation = Math.max(revisionIn(revision) + 1, lowestGeneration);
    const planned = new Map(publicKeys.map((key) => [key, plan(key, items.get(key), generation)]));
    const change = { planned, generation };
    const writes = [...planned].flatMap(([key, { row }]) => writeOf(connection, key, row, items.get(key)));
    if (writes.length === 0) return change;
    const writeRevision = moveRevision(connection, shard, revision, generation);
    if ((await transact(connection, [writeRevision, ...writes])) === 'written') return change;
    lastTry = change;
  }
  throw new SignerError('key_table_unavailable', { detail: { problem: 'others keep changing the same shard' } });
}

function writeOf(
  { tableName: TableName }: TableConnection,
  publicKey: string,
  row: TableRow | 'removed' | 'kept',
  found: Item | undefined,
): TransactWriteItem[] {
  if (row === 'kept') return [];
  if (row === 'removed') return [{ Delete: { TableName, Key: keyOfRow(publicKey), ...stillAs(found, 'secret') } }];
  return [{ Put: { TableName, Item: encodeRow(row), ...stillAs(found, 'secret') } }];
}

function moveRevision(
  { tableName: TableName }: TableConnection,
  shard: number,
  found: Item | undefined,
  revision: number,
): TransactWriteItem {
  const item = { ...keyOfRevision(shard), revision: { N: String(revision) } };
  return { Put: { TableName, Item: item, ...stillAs(found, 'revision') } };
}

/** Every write of a row has a nonce of its own: the same secret bytes are the same row. */
function stillAs(found: Item | undefined, attribute: 'secret' | 'revision') {
  const ExpressionAttributeNames = { '#attribute': attribute };
  const value = found?.[attribute];
  if (value === undefined) return { ConditionExpression: 'attribute_not_exists(#attribute)', ExpressionAttributeNames };
  return {
    ConditionExpression: '#attribute = :found',
    ExpressionAttributeNames,
    ExpressionAttributeValues: { ':found': value },
  };
}

/** A condition also fails on the echo of our own write. A transaction is whole: one of its rows tells of all. */
function wasWritten({ planned }: KeyRowsChange<unknown>, items: ReadonlyMap<string, Item>): boolean {
  const rows = [...planned].filter(([, { row }]) => row !== 'kept');
  const puts = rows.flatMap(([, { row }]) => (typeof row === 'string' ? [] : [row]));
  if (puts.length === 0) return rows.every(([publicKey]) => !items.has(publicKey));
  return puts.some(({ publicKey, encryptedSecret }) => {
    const stored = items.get(publicKey)?.['secret']?.B;
    return stored !== undefined && encryptedSecret.equals(stored);
  });
}
