// What a start on this table would find, without its key and without a change: `server --check`.

import { type DynamoDBClient, GetItemCommand } from '../../signer/aws/dynamodb.ts';
import { NETWORK_PARTITION } from '../../signer/slashing/dynamodb/tables/items.ts';
import { confirmNetwork, decodeFloor, type RecordBinding } from '../../signer/slashing/dynamodb/tables/record.ts';
import {
  checkReplication,
  refuseRegion,
  replicationOf,
  startFault,
} from '../../signer/slashing/dynamodb/tables/store.ts';
import type { StoreFloor } from '../../signer/slashing/types.ts';

export async function lookAtSlashingTable(
  client: DynamoDBClient,
  binding: Omit<RecordBinding, 'integrity'> & { readonly onFloor: (floor: StoreFloor | null) => void },
): Promise<'new' | 'good'> {
  const { tableName } = binding;
  const explain = (error: unknown) => startFault(error, tableName);
  const replication = await replicationOf(client, tableName).catch(explain);
  const Key = { pk: { S: NETWORK_PARTITION } };
  const get = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true });
  const { Item: item } = await client.send(get).catch(explain);
  const bound = item?.['store_region']?.S;
  if (replication !== 'none') checkReplication(replication, bound, tableName);
  if (item === undefined) return 'new';
  confirmNetwork(item, binding);
  const region = await client.config.region();
  if (bound !== undefined && bound !== region) throw refuseRegion({ tableName, region, bound });
  binding.onFloor(decodeFloor(item) ?? null);
  return 'good';
}
