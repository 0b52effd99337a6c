// The one file through which the DynamoDB client enters the program. The readers of items check their integrity.

import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type AttributeValue,
  BatchGetItemCommand,
  DynamoDBClient,
  type GetItemCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { jittered } from '../../common/flow/backoff.ts';
import { type AwsClientOptions, awsClientConfiguration, CALL_WATCHER_STEP, callWatcher } from './client.ts';
import { type AwsFault, awsFault } from './errors.ts';

export type {
  AttributeValue,
  BatchStatementRequest,
  CreateTableCommandInput,
  DynamoDBClient,
  TransactWriteItem,
} from '@aws-sdk/client-dynamodb';
export {
  BatchExecuteStatementCommand,
  BatchGetItemCommand,
  CreateTableCommand,
  DeleteItemCommand,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateContinuousBackupsCommand,
  UpdateItemCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';

export type Item = Record<string, AttributeValue>;

/** The answer calls the table by its name or by its ARN. */
function ofOneTable<Entry>(byTable: Readonly<Record<string, Entry>> | undefined): Entry | undefined {
  const entries = Object.values(byTable ?? {});
  if (entries.length > 1) throw new Error('DynamoDB answered for tables that were not asked for');
  return entries[0];
}

/** Tells the service's time of each answer, milliseconds in whole seconds. */
export function onAnswerDate(command: GetItemCommand, onDate: (date: number) => void): void {
  command.middlewareStack.add(
    (next) => async (call) => {
      const answer = await next(call);
      const { headers } = answer.response as { readonly headers?: Readonly<Record<string, string>> };
      const date = Date.parse(headers?.['date'] ?? '');
      if (!Number.isNaN(date)) onDate(date);
      return answer;
    },
    { step: 'deserialize', name: 'strongroomAnswerDate' },
  );
}

export function createDynamoDBClient(options: AwsClientOptions): DynamoDBClient {
  const client = new DynamoDBClient(awsClientConfiguration(options));
  // This middleware copies every answer for a logger, and the client has none.
  client.middlewareStack.remove('loggerMiddleware');
  if (options.onCall !== undefined) client.middlewareStack.add(callWatcher(options.onCall), CALL_WATCHER_STEP);
  return client;
}

const MAX_TRANSACTION_ITEMS = 100;
const MAX_TRIES = 3;
export const RETRY_PAUSE_MS = 50;
/** The same call may succeed later, or may have succeeded already. */
const PASSING_FAULTS: ReadonlySet<AwsFault> = new Set(['conflict', 'throttled', 'unreachable']);

/** `condition_failed` may also be the echo of our own write whose answer was lost: callers read back and compare. */
export type WriteOutcome = 'written' | 'condition_failed';

/** The service applies the same token once. @throws what the last try failed with */
export async function transactWrite(
  client: DynamoDBClient,
  items: readonly TransactWriteItem[],
): Promise<WriteOutcome> {
  assert(items.length <= MAX_TRANSACTION_ITEMS);
  const call = { TransactItems: [...items], ClientRequestToken: randomUUID() };
  for (let tries = 1; ; tries++) {
    try {
      await client.send(new TransactWriteItemsCommand(call));
      return 'written';
    } catch (error) {
      const fault = awsFault(error);
      if (fault === 'condition_failed') return 'condition_failed';
      if (tries === MAX_TRIES || !PASSING_FAULTS.has(fault)) throw error;
    }
    await pause(jittered(RETRY_PAUSE_MS * 2 ** tries));
  }
}

/** The service's own limit. */
export const MAX_BATCH_GET_ITEMS = 100;

interface BatchRead {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly keys: readonly Item[];
  readonly maxRounds: number;
  /** Which attributes are wanted; default: all. */
  readonly projection?: object;
}

/** Strongly consistent item by item. @throws Error when keys stay unprocessed */
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
