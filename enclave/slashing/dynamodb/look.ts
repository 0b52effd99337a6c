// Whether a start could use the table, without writing it: `server --check`. The record of the store is read as far as
// that needs no key: its format, its network and its region.

import { type DynamoDBClient, GetItemCommand } from '../../aws/dynamodb.ts';
import { checkReplication, replicationOf } from './replicas.ts';
import { refuseRegion, startFault } from './store-faults.ts';
import { NETWORK_PARTITION } from './tables/items.ts';
import { confirmNetwork, type RecordBinding, regionIn } from './tables/record.ts';

/** @throws SignerError slashing_unavailable, as opening it would */
export async function lookAtSlashingTable(
  client: DynamoDBClient,
  binding: Omit<RecordBinding, 'integrity'>,
): Promise<'new' | 'good'> {
  const { tableName } = binding;
  const explain = (error: unknown) => startFault(error, tableName);
  const replication = await replicationOf(client, tableName).catch(explain);
  const Key = { pk: { S: NETWORK_PARTITION } };
  const get = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true });
  const { Item: item } = await client.send(get).catch(explain);
  const bound = item === undefined ? undefined : regionIn(item);
  if (replication !== 'none') checkReplication(replication, bound, tableName);
  if (item === undefined) return 'new';
  confirmNetwork(item, binding);
  const region = await client.config.region();
  if (bound !== undefined && bound !== region) throw refuseRegion({ tableName, region, bound });
  return 'good';
}
