// The key table (decisions.md section 6): 16 shards of keys, each with a revision row that moves with every change.

import type { CreateTableCommandInput } from '../aws/dynamodb.ts';

/** `pk` = `KEYS#<shard>`, `sk` = the public key. */
export function keyTableDefinition(tableName: string): CreateTableCommandInput {
  return {
    TableName: tableName,
    AttributeDefinitions: [
      { AttributeName: 'pk', AttributeType: 'S' },
      { AttributeName: 'sk', AttributeType: 'S' },
    ],
    KeySchema: [
      { AttributeName: 'pk', KeyType: 'HASH' },
      { AttributeName: 'sk', KeyType: 'RANGE' },
    ],
    BillingMode: 'PAY_PER_REQUEST',
    DeletionProtectionEnabled: true,
  };
}
