// How the key table is called. A fault that stays is SignerError `key_table_unavailable`.

import {
  type DynamoDBClient,
  type Item,
  QueryCommand,
  readBatchOfItems,
  type TransactWriteItem,
  transactWrite,
  type WriteOutcome,
} from '../../aws/dynamodb.ts';
import { faultsAs } from '../../aws/errors.ts';
import { keyOfRevision, revisionIn, SHARDS, shardPartition } from './rows.ts';

const MAX_READ_ROUNDS = 8;
export interface TableConnection {
  readonly client: DynamoDBClient;
  readonly tableName: string;
}

interface Page {
  readonly items: readonly Item[];
  readonly next: string | undefined;
}

export function readItems({ client, tableName }: TableConnection, keys: readonly Item[]): Promise<Item[]> {
  return reading(() => readBatchOfItems({ client, tableName, keys, maxRounds: MAX_READ_ROUNDS }));
}

export async function readRevisions(connection: TableConnection): Promise<readonly number[]> {
  const items = await readItems(connection, SHARDS.map(keyOfRevision));
  const byPartition = new Map(items.map((item) => [item['pk']?.S, item]));
  return SHARDS.map((shard) => revisionIn(byPartition.get(shardPartition(shard))));
}

interface PageOptions {
  readonly after: string | undefined;
  readonly limit: number;
  readonly status?: string | undefined;
  readonly projection?: { ProjectionExpression: string; ExpressionAttributeNames: Record<string, string> };
}

/** Never the revision row; with a status, maybe fewer than there are. */
export function readRowsPage(
  { client, tableName }: TableConnection,
  shard: number,
  options: PageOptions,
): Promise<Page> {
  const { after, limit, status, projection } = options;
  const pk = { S: shardPartition(shard) };
  const filter = status === undefined ? {} : { FilterExpression: '#status = :status' };
  const names = { ...projection?.ExpressionAttributeNames, ...(status === undefined ? {} : { '#status': 'status' }) };
  const values = { ':pk': pk, ':prefix': { S: '0x' }, ...(status === undefined ? {} : { ':status': { S: status } }) };
  return reading(async () => {
    const answer = await client.send(
      new QueryCommand({
        TableName: tableName,
        ConsistentRead: true,
        KeyConditionExpression: 'pk = :pk AND begins_with(sk, :prefix)',
        ExpressionAttributeValues: values,
        ...filter,
        ...(projection === undefined ? {} : { ProjectionExpression: projection.ProjectionExpression }),
        ...(Object.keys(names).length === 0 ? {} : { ExpressionAttributeNames: names }),
        ...(after === undefined ? {} : { ExclusiveStartKey: { pk, sk: { S: after } } }),
        Limit: limit,
      }),
    );
    return { items: answer.Items ?? [], next: answer.LastEvaluatedKey?.['sk']?.S };
  });
}

export function transact({ client }: TableConnection, items: readonly TransactWriteItem[]): Promise<WriteOutcome> {
  return reading(() => transactWrite(client, items));
}

function reading<T>(read: () => Promise<T>): Promise<T> {
  return faultsAs('key_table_unavailable', read);
}
