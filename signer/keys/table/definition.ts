// What makes the key table. No signer makes it: `strongroom setup` does.

import type { CreateTableCommandInput } from '../../aws/dynamodb.ts';
import { tableDefinition } from '../../aws/table-definition.ts';

export function keyTableDefinition(tableName: string): CreateTableCommandInput {
  return tableDefinition(tableName, 'sk');
}
