// One BatchGetItem of one table, asked again for what the service leaves unprocessed: complete, or a failure.

import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { BatchGetItemCommand, type DynamoDBClient, type Item, ofOneTable } from './dynamodb.ts';
import { jittered, RETRY_PAUSE_MS } from './dynamodb-transact.ts';

/** Keys of one BatchGetItem: the service's own limit. */
export const MAX_BATCH_GET_ITEMS = 100;

export interface BatchRead {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly keys: readonly Item[];
  readonly maxRounds: number;
  /** Members of the table's request that say which attributes are wanted; default: all. */
  readonly projection?: object;
}

/** Strongly consistent item by item. @throws what a call failed of; Error when keys stay unprocessed */
export async function readBatchOfItems({ client, tableName, keys, maxRounds, projection }: BatchRead): Promise<Item[]> {
  assert(keys.length <= MAX_BATCH_GET_ITEMS);
  const found: Item[] = [];
  let wanted: Item[] = [...keys];
  for (let round = 1; wanted.length > 0; round++) {
    if (round > maxRounds) throw new Error('the table leaves items of a read unprocessed');
    if (round > 1) await pause(jittered(RETRY_PAUSE_MS * round));
    const RequestItems = { [tableName]: { Keys: wanted, ConsistentRead: true, ...projection } };
    const answer = await client.send(new BatchGetItemCommand({ RequestItems }));
    found.push(...(ofOneTable(answer.Responses) ?? []));
    wanted = ofOneTable(answer.UnprocessedKeys)?.Keys ?? [];
  }
  return found;
}
