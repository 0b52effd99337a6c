// The latch: the row SEAL_OVERRIDE, which keeps a fleet sealed. An operator who recovers the fleet (`strongroom
// operator recover --yes`) reads it, and deletes it on the condition that it still says what was read, so that a second
// seal in between stays. No signer and no image has this code: a signer writes a latch and never deletes one
// (specification/custody.md#states).

import { createDynamoDBClient, DeleteItemCommand, GetItemCommand } from '../../signer/aws/dynamodb.ts';
import { awsFault } from '../../signer/aws/errors.ts';
import { parseTableArn } from '../../signer/aws/table-name.ts';
import { type Latch, SEAL_OVERRIDE } from '../../signer/chamber/state-rows.ts';

export async function openLatchTable(tableName: string) {
  const region = parseTableArn(tableName)?.region;
  const client = createDynamoDBClient(region === undefined ? {} : { region });
  const place = { TableName: tableName, Key: { pk: { S: SEAL_OVERRIDE } } };
  return {
    async read(): Promise<Latch | undefined> {
      const { Item: item } = await client.send(new GetItemCommand({ ...place, ConsistentRead: true }));
      if (item === undefined) return undefined;
      const text = (name: string): string | null => item[name]?.S ?? null;
      return { sealedAt: text('sealed_at'), reason: text('reason'), accessor: text('accessor') };
    },
    async delete(row: Latch): Promise<'deleted' | 'changed'> {
      try {
        await client.send(new DeleteItemCommand({ ...place, ...isStill(row) }));
        return 'deleted';
      } catch (error) {
        if (awsFault(error) === 'condition_failed') return 'changed';
        throw error;
      }
    },
    close: () => client.destroy(),
  };
}

/** Each member as it was read, those that are missing among them. `reason` is a reserved word of DynamoDB. */
function isStill({ sealedAt, reason, accessor }: Latch) {
  const members = Object.entries({ sealed_at: sealedAt, reason, accessor });
  const conditions = members.map(([name, value]) =>
    value === null ? `attribute_not_exists(#${name})` : `#${name} = :${name}`,
  );
  const given = members.filter((member): member is [string, string] => member[1] !== null);
  return {
    ConditionExpression: ['attribute_exists(pk)', ...conditions].join(' AND '),
    ExpressionAttributeNames: Object.fromEntries(members.map(([name]) => [`#${name}`, name])),
    ...(given.length === 0
      ? {}
      : { ExpressionAttributeValues: Object.fromEntries(given.map(([name, value]) => [`:${name}`, { S: value }])) }),
  };
}
