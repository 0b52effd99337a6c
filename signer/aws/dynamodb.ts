// The one file through which the DynamoDB client enters the program. The service trusts nothing it is told here beyond
// what the SDK authenticates (TLS to the endpoint); whoever reads an item checks that item's own integrity.

import { type AttributeValue, DynamoDBClient, type GetItemCommand } from '@aws-sdk/client-dynamodb';
import { type AwsClientOptions, awsClientConfiguration, CALL_WATCHER_STEP, callWatcher } from './client.ts';

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

/** The entry of a BatchGetItem of one table, whether the answer calls the table by its name or by its ARN. */
export function ofOneTable<Entry>(byTable: Readonly<Record<string, Entry>> | undefined): Entry | undefined {
  const entries = Object.values(byTable ?? {});
  if (entries.length > 1) throw new Error('DynamoDB answered for tables that were not asked for');
  return entries[0];
}

/** Tell the service's time of each answer, whole seconds as milliseconds since the epoch, where the answer has it. */
export function onAnswerDate(command: GetItemCommand, told: (date: number) => void): void {
  command.middlewareStack.add(
    (next) => async (call) => {
      const answer = await next(call);
      const { headers } = answer.response as { readonly headers?: Readonly<Record<string, string>> };
      const date = Date.parse(headers?.['date'] ?? '');
      if (!Number.isNaN(date)) told(date);
      return answer;
    },
    { step: 'deserialize', name: 'strongroomAnswerDate' },
  );
}

export function createDynamoDBClient(options: AwsClientOptions): DynamoDBClient {
  const client = new DynamoDBClient(awsClientConfiguration(options));
  // It copies every answer, without what is sensitive, for a logger that nobody gave.
  client.middlewareStack.remove('loggerMiddleware');
  if (options.onCall !== undefined) client.middlewareStack.add(callWatcher(options.onCall), CALL_WATCHER_STEP);
  return client;
}
