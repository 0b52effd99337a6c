// Whether a slashing table may be written in more than one region. Two regions of a global table each accept a write
// and compare later, so two signers could each record another vote for one target. A table with such replicas is used
// only while its record binds it to one region; signers of other regions are refused.

import { DescribeTableCommand, type DynamoDBClient } from '../../aws/dynamodb.ts';
import { awsFault } from '../../aws/errors.ts';
import { unusable } from './tables/record.ts';

/** `eventual`: each region accepts writes by itself; `strong`: they agree before they answer. */
export type Replication = 'none' | 'eventual' | 'strong';

export async function replicationOf(client: DynamoDBClient, tableName: string): Promise<Replication> {
  const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName })).catch((error: unknown) => {
    if (awsFault(error) !== 'denied') throw error;
    throw unusable(NOT_ALLOWED, { cause: error, detail: { table: tableName } });
  });
  // The first version of global tables says its version here and lists no replicas.
  const isGlobal = (Table?.Replicas ?? []).length > 0 || Table?.GlobalTableVersion !== undefined;
  if (Table?.MultiRegionConsistency === 'STRONG') return 'strong';
  return isGlobal ? 'eventual' : 'none';
}

/** @throws SignerError slashing_unavailable @param boundRegion of the record; undefined while it names none */
export function checkReplication(replication: Replication, boundRegion: string | undefined, tableName: string): void {
  const detail = { table: tableName };
  if (replication === 'strong') throw unusable(NO_TRANSACTIONS, { detail });
  if (replication === 'eventual' && boundRegion === undefined) throw unusable(NOT_BOUND, { detail });
}

const NOT_ALLOWED =
  'the slashing table cannot be described, so nobody knows whether two regions write it: allow the signer ' +
  'dynamodb:DescribeTable on it (or set the credentials right)';
const NO_TRANSACTIONS =
  'the slashing table is a global table with multi-Region strong consistency, which takes no transactions: ' +
  'use a table in one region';
const NOT_BOUND =
  'the slashing table has replicas in other regions, which accept writes of their own, and it is not bound to one ' +
  'region yet: two signers could each record another vote. Remove the replicas, start a signer once, and add them again';
