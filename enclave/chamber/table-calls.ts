// How the state table is called. Reads are complete or fail. A transaction is tried again with the same token until its
// outcome is known. A lasting fault becomes SignerError `state_stale`, with the fault or the row in its detail.

import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { readBatchOfItems } from '../aws/batch-read.ts';
import {
  type DynamoDBClient,
  type Item,
  ScanCommand,
  TransactGetItemsCommand,
  type TransactWriteItem,
} from '../aws/dynamodb.ts';
import { jittered, RETRY_PAUSE_MS, transactWrite, type WriteOutcome } from '../aws/dynamodb-transact.ts';
import { awsFault, faultsAs } from '../aws/errors.ts';

/** Rounds of one batch read while the service leaves rows unprocessed. */
const MAX_READ_ROUNDS = 5;
export function keyOf(pk: string): Item {
  return { pk: { S: pk } };
}

/** The rows that exist, by pk. @throws when the service leaves one unread */
export async function readBatch(
  client: DynamoDBClient,
  tableName: string,
  pks: readonly string[],
  projection: object = {},
): Promise<ReadonlyMap<string, Item>> {
  const keys = pks.map(keyOf);
  const items = await readBatchOfItems({ client, tableName, keys, maxRounds: MAX_READ_ROUNDS, projection });
  return new Map(items.map((item) => [item['pk']?.S ?? '', item]));
}

/** The rows that exist, by pk, all from one moment. */
export async function readSnapshot(
  client: DynamoDBClient,
  tableName: string,
  pks: readonly string[],
): Promise<ReadonlyMap<string, Item>> {
  const TransactItems = pks.map((pk) => ({ Get: { TableName: tableName, Key: keyOf(pk) } }));
  const answer = await sendReadTransaction(client, new TransactGetItemsCommand({ TransactItems }));
  assert.equal(answer.Responses?.length, pks.length);
  const items = answer.Responses.flatMap(({ Item }) => (Item === undefined ? [] : [Item]));
  return new Map(items.map((item) => [item['pk']?.S ?? '', item]));
}

/** Reads until it finds a row: of a table that is empty, that is one call. */
export async function isEmptyTable(client: DynamoDBClient, tableName: string): Promise<boolean> {
  let start: Item | undefined;
  do {
    const scan = { TableName: tableName, ConsistentRead: true, Limit: 1, ExclusiveStartKey: start };
    const answer = await client.send(new ScanCommand(scan));
    if ((answer.Items?.length ?? 0) > 0) return false;
    start = answer.LastEvaluatedKey;
  } while (start !== undefined);
  return true;
}

export function transact(client: DynamoDBClient, items: readonly TransactWriteItem[]): Promise<WriteOutcome> {
  return reading(() => transactWrite(client, items));
}

export function reading<T>(read: () => Promise<T>): Promise<T> {
  return faultsAs('state_stale', read);
}

/** The service cancels a read transaction that meets a write to one of its rows: that is no fault. */
async function sendReadTransaction(client: DynamoDBClient, command: TransactGetItemsCommand) {
  for (let tries = 1; ; tries++) {
    try {
      return await client.send(command);
    } catch (error) {
      if (tries === MAX_READ_ROUNDS || awsFault(error) !== 'conflict') throw error;
    }
    await pause(jittered(RETRY_PAUSE_MS * tries));
  }
}
