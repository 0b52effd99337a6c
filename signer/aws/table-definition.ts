// What `CreateTable` needs for any of our tables: on-demand capacity, string keys, protected against deletion.

import type { CreateTableCommandInput } from './dynamodb.ts';

export function tableDefinition(tableName: string, sortKey?: string): CreateTableCommandInput {
  const sorted = sortKey === undefined ? [] : [sortKey];
  return {
    TableName: tableName,
    AttributeDefinitions: ['pk', ...sorted].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
    KeySchema: [
      { AttributeName: 'pk', KeyType: 'HASH' },
      ...sorted.map((AttributeName) => ({ AttributeName, KeyType: 'RANGE' as const })),
    ],
    BillingMode: 'PAY_PER_REQUEST',
    DeletionProtectionEnabled: true,
  };
}
