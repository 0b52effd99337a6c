// What a start on this table would find, without its key and without a change: `server --check`.

import { createDynamoDBClient, GetItemCommand } from '../../signer/aws/dynamodb.ts';
import { NETWORK_PARTITION } from '../../signer/slashing/dynamodb/tables/items.ts';
import { confirmNetwork, decodeFloor, type RecordBinding } from '../../signer/slashing/dynamodb/tables/record.ts';
import {
  checkReplication,
  refuseRegion,
  replicationOf,
  startFault,
} from '../../signer/slashing/dynamodb/tables/store.ts';
import type { StoreGlimpse } from '../look.ts';

export async function lookAtSlashingTable(binding: Omit<RecordBinding, 'integrity'>): Promise<StoreGlimpse> {
  const { tableName } = binding;
  const explain = (error: unknown) => startFault(error, tableName);
  const client = createDynamoDBClient({});
  try {
    const replication = await replicationOf(client, tableName).catch(explain);
    const Key = { pk: { S: NETWORK_PARTITION } };
    const get = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true });
    const { Item: item } = await client.send(get).catch(explain);
    const bound = item?.['store_region']?.S;
    if (replication !== 'none') checkReplication(replication, bound, tableName);
    if (item === undefined) return { state: 'new' };
    confirmNetwork(item, binding);
    const region = await client.config.region();
    if (bound !== undefined && bound !== region) throw refuseRegion({ tableName, region, bound });
    return { state: 'good', floor: decodeFloor(item) ?? null };
  } finally {
    client.destroy();
  }
}
