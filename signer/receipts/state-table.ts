// Receipts in the state table, apart from the log as a folder is: an item for each file, and one that lists the boots,
// because a signer never scans the table. It needs no right that a signer does not have there. Whoever writes the table
// can withhold a log, and forge nothing of another boot.

import { readHead } from '../../common/receipts/head.ts';
import { CHECKPOINT } from '../../common/receipts/tiles.ts';
import {
  DeleteItemCommand,
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
  UpdateItemCommand,
} from '../aws/dynamodb.ts';
import { inParallel } from '../parallel.ts';
import type { ReceiptStorage } from './storage.ts';

/** The item that lists boots has this key; a file of a boot has it with `#BOOT#PATH` behind it. */
export const RECEIPTS = 'RECEIPTS';
/** An item of so many has 40 KB. Files of boots that are no longer listed stay. */
const MAX_LISTED_BOOTS = 512;
const MAX_CALLS = 8;
const ATTRIBUTE = /^boot_([0-9a-f]{32})$/;

export function receiptsInStateTable(client: DynamoDBClient, tableName: string): ReceiptStorage {
  const keyOf = (boot: string, path: string): Item => ({ pk: { S: `${RECEIPTS}#${boot}#${path}` } });
  const list = { TableName: tableName, Key: { pk: { S: RECEIPTS } } };

  async function enlist(boot: string, timeMs: number): Promise<void> {
    const answer = await client.send(
      new UpdateItemCommand({
        ...list,
        UpdateExpression: 'SET #boot = :time',
        ExpressionAttributeNames: { '#boot': `boot_${boot}` },
        ExpressionAttributeValues: { ':time': { N: String(timeMs) } },
        ReturnValues: 'ALL_NEW',
      }),
    );
    const oldest = bootsIn(answer.Attributes).slice(MAX_LISTED_BOOTS);
    if (oldest.length === 0) return;
    const names = oldest.map((one, index) => [`#b${index}`, `boot_${one}`] as const);
    await client.send(
      new UpdateItemCommand({
        ...list,
        UpdateExpression: `REMOVE ${names.map(([name]) => name).join(', ')}`,
        ExpressionAttributeNames: Object.fromEntries(names),
      }),
    );
  }

  return {
    async boots() {
      return bootsIn((await client.send(new GetItemCommand({ ...list, ConsistentRead: true }))).Item);
    },
    async read(boot, path) {
      const call = new GetItemCommand({ TableName: tableName, Key: keyOf(boot, path), ConsistentRead: true });
      const content = (await client.send(call)).Item?.['content']?.B;
      return content === undefined ? undefined : Buffer.from(content);
    },
    async write(boot, files) {
      await inParallel(files, MAX_CALLS, async ({ path, content }) => {
        const Item = { ...keyOf(boot, path), content: { B: content } };
        await client.send(new PutItemCommand({ TableName: tableName, Item }));
      });
      const checkpoint = files.find(({ path }) => path === CHECKPOINT);
      const head = checkpoint && readHead(Buffer.from(checkpoint.content).toString('utf8'));
      if (head !== undefined) await enlist(boot, head.statement.time);
    },
    async remove(boot, paths) {
      await inParallel(paths, MAX_CALLS, async (path) => {
        await client.send(new DeleteItemCommand({ TableName: tableName, Key: keyOf(boot, path) }));
      });
    },
  };
}

/** The latest first. */
function bootsIn(item: Item | undefined): string[] {
  const boots = Object.entries(item ?? {}).flatMap(([name, value]) => {
    const boot = ATTRIBUTE.exec(name)?.[1];
    return boot === undefined ? [] : [{ boot, timeMs: Number(value.N) }];
  });
  return boots.sort((one, other) => other.timeMs - one.timeMs).map(({ boot }) => boot);
}
