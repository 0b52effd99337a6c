// Receipts in the state table, apart from the log as a folder is: an item for each file, and items that list the boots,
// because a signer never scans the table. It needs no right that a signer does not have there. A person who can write
// the table can withhold a log, but not forge one of another boot. A boot leaves the first list only once a further one
// has it.

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
import { awsFault } from '../aws/errors.ts';
import { inParallel } from '../parallel.ts';
import type { ReceiptStorage } from './storage.ts';

/** The first list has this key, a further one `#lists#N` behind it, and a file of a boot `#BOOT#PATH`. */
const RECEIPTS = 'RECEIPTS';
/** An item of so many has 40 KB, and each head is written into it. */
const MAX_LISTED_BOOTS = 512;
/** Those with the latest heads, which go on, stay in the first list when it is full. */
const KEPT_BOOTS = 256;
/** In the first list: how many further lists there are. */
const LISTS = 'lists';
const MAX_CALLS = 8;
const ATTRIBUTE = /^boot_([0-9a-f]{32})$/;

export function receiptsInStateTable(client: DynamoDBClient, tableName: string): ReceiptStorage {
  const keyOf = (boot: string, path: string): Item => ({ pk: { S: `${RECEIPTS}#${boot}#${path}` } });
  const keyOfList = (list?: number) => ({
    TableName: tableName,
    Key: { pk: { S: list === undefined ? RECEIPTS : `${RECEIPTS}#lists#${list}` } },
  });

  /** @param condition of the item as it is */
  async function change(
    key: ReturnType<typeof keyOfList>,
    expression: string,
    { names, values = {} }: { readonly names: readonly string[]; readonly values?: Item },
    condition?: string,
  ): Promise<Item | undefined> {
    const call = {
      ...key,
      UpdateExpression: expression,
      ExpressionAttributeNames: Object.fromEntries(names.map((name, index) => [`#n${index}`, name])),
      ...(Object.keys(values).length > 0 ? { ExpressionAttributeValues: values } : {}),
      ...(condition === undefined ? {} : { ConditionExpression: condition }),
      ReturnValues: 'ALL_NEW' as const,
    };
    return (await client.send(new UpdateItemCommand(call))).Attributes;
  }

  async function enlist(boot: string, timeMs: number): Promise<void> {
    const time = { ':time': { N: String(timeMs) } };
    const item = await change(keyOfList(), 'SET #n0 = :time', { names: [`boot_${boot}`], values: time });
    const listed = timesIn(item);
    if (listed.length > MAX_LISTED_BOOTS) await moveOn(listed.slice(KEPT_BOOTS), listsOf(item));
  }

  /** Two signers that move at once write one list, of which one counts: what the other one moved stays in the first. */
  async function moveOn(oldest: readonly ListedBoot[], list: number): Promise<void> {
    const names = oldest.map(({ boot }) => `boot_${boot}`);
    const values = Object.fromEntries(oldest.map(({ timeMs }, index) => [`:v${index}`, { N: String(timeMs) }]));
    const each = (item: (index: number) => string): string => names.map((_, index) => item(index)).join(', ');
    await change(keyOfList(list), `SET ${each((at) => `#n${at} = :v${at}`)}`, { names, values });
    const lists = `#n${names.length}`;
    const next = { ':next': { N: String(list + 1) }, ...(list === 0 ? {} : { ':list': { N: String(list) } }) };
    await change(
      keyOfList(),
      `SET ${lists} = :next REMOVE ${each((at) => `#n${at}`)}`,
      { names: [...names, LISTS], values: next },
      list === 0 ? `attribute_not_exists(${lists})` : `${lists} = :list`,
    ).catch((error: unknown) => {
      if (awsFault(error) !== 'condition_failed') throw error;
    });
  }

  async function listAt(list?: number): Promise<Item | undefined> {
    return (await client.send(new GetItemCommand({ ...keyOfList(list), ConsistentRead: true }))).Item;
  }

  return {
    async boots() {
      const first = await listAt();
      const times = new Map<string, number>();
      await inParallel([...Array(listsOf(first)).keys()], MAX_CALLS, async (list) => {
        // Of one that a person took away, the verifier misses what other boots name (`unlisted`).
        for (const { boot, timeMs } of timesIn(await listAt(list)))
          times.set(boot, Math.max(timeMs, times.get(boot) ?? 0));
      });
      for (const { boot, timeMs } of timesIn(first)) times.set(boot, timeMs);
      return latestFirst([...times].map(([boot, timeMs]) => ({ boot, timeMs }))).map(({ boot }) => boot);
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

interface ListedBoot {
  readonly boot: string;
  readonly timeMs: number;
}

function listsOf(item: Item | undefined): number {
  return Number(item?.[LISTS]?.N ?? 0);
}

function timesIn(item: Item | undefined): ListedBoot[] {
  const boots = Object.entries(item ?? {}).flatMap(([name, value]) => {
    const boot = ATTRIBUTE.exec(name)?.[1];
    return boot === undefined ? [] : [{ boot, timeMs: Number(value.N) }];
  });
  return latestFirst(boots);
}

function latestFirst(boots: ListedBoot[]): ListedBoot[] {
  return boots.sort((one, other) => other.timeMs - one.timeMs || (one.boot < other.boot ? -1 : 1));
}
