// The calls that the DynamoDB backend makes. What goes wrong on the way is `slashing_unavailable`, never a refusal.

import { SignerError } from '../../../api/errors.ts';
import {
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  PutItemCommand,
  readBatchOfItems,
  ScanCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '../../../aws/dynamodb.ts';
import { awsFault } from '../../../aws/errors.ts';
import type { RowIntegrity } from '../../history/codes.ts';
import type { PublicKeyHex } from '../../types.ts';
import {
  decodeMarkItem,
  encodeMarkItem,
  isStillStored,
  type MarkItem,
  type MarkKey,
  markKeyOf,
  markPartition,
} from './items.ts';

export const MAX_BATCH_ITEMS = 100;
/** Decoding them takes the event loop a few milliseconds. */
const SCAN_PAGE_ITEMS = 500;
/** Rounds of one BatchGetItem while the service leaves keys unprocessed. */
const MAX_READ_ROUNDS = 8;

export type Stored = MarkItem | undefined | 'damaged';

export interface Replacement {
  readonly key: MarkKey;
  readonly next: MarkItem;
  readonly expected: MarkItem | undefined;
}

type TogetherOutcome =
  | { readonly kind: 'replaced' }
  | { readonly kind: 'conflict' }
  | {
      readonly kind: 'changed';
      readonly isGuardBroken: boolean;
      /** In the order of the replacements; `as_expected`: not known to be otherwise. */
      readonly stored: readonly (Stored | 'as_expected')[];
    };

export type ReplaceOutcome = { readonly kind: 'replaced' } | { readonly kind: 'changed'; readonly stored: Stored };

export interface ScannedItem {
  readonly key: MarkKey;
  readonly stored: MarkItem | 'damaged';
}

export type SlashingTable = ReturnType<typeof slashingTable>;

export function slashingTable(client: DynamoDBClient, tableName: string, integrity: RowIntegrity) {
  const decode = (key: MarkKey, item: Item | undefined): Stored =>
    item === undefined ? undefined : (decodeMarkItem(key, item, integrity) ?? 'damaged');
  const putOf = ({ key, next, expected }: Replacement) => ({
    TableName: tableName,
    Item: encodeMarkItem(key, next),
    ...isStillStored(expected),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  });

  return {
    /** Strongly consistent. */
    async read(key: MarkKey): Promise<Stored> {
      const Key = { pk: { S: markPartition(key) } };
      const answer = await client
        .send(new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true }))
        .catch(unavailable);
      return decode(key, answer.Item);
    },

    /** At most MAX_BATCH_ITEMS, no key twice, in their order. Strongly consistent item by item. */
    async readMany(keys: readonly MarkKey[]): Promise<Stored[]> {
      const wanted = keys.map((key): Item => ({ pk: { S: markPartition(key) } }));
      const asked = { client, tableName, keys: wanted, maxRounds: MAX_READ_ROUNDS };
      const found = await readBatchOfItems(asked).catch(unavailable);
      const items = new Map(found.map((item) => [item['pk']?.S ?? '', item]));
      return keys.map((key) => decode(key, items.get(markPartition(key))));
    },

    /** One round trip. A write whose answer was lost may also come back as `changed`. */
    async replace(replacement: Replacement): Promise<ReplaceOutcome> {
      try {
        await client.send(new PutItemCommand(putOf(replacement)));
        return { kind: 'replaced' };
      } catch (error) {
        if (awsFault(error) !== 'condition_failed') return unavailable(error);
        return { kind: 'changed', stored: decode(replacement.key, (error as { Item?: Item }).Item) };
      }
    },

    /** All or none of at most MAX_BATCH_ITEMS, a guard among them: a condition on an item that is not written. */
    async replaceTogether(replacements: readonly Replacement[], guard?: TransactWriteItem): Promise<TogetherOutcome> {
      const puts = replacements.map((replacement) => ({ Put: putOf(replacement) }));
      const TransactItems = guard === undefined ? puts : [guard, ...puts];
      try {
        await client.send(new TransactWriteItemsCommand({ TransactItems }));
        return { kind: 'replaced' };
      } catch (error) {
        const fault = awsFault(error);
        if (fault === 'conflict') return { kind: 'conflict' };
        if (fault !== 'condition_failed') return unavailable(error);
        const { CancellationReasons: reasons = [] } = error as { CancellationReasons?: readonly CancellationReason[] };
        const ofPuts = guard === undefined ? reasons : reasons.slice(1);
        return {
          kind: 'changed',
          isGuardBroken: guard !== undefined && hasFailed(reasons[0]),
          stored: replacements.map(({ key }, index) =>
            hasFailed(ofPuts[index]) ? decode(key, ofPuts[index]?.Item) : 'as_expected',
          ),
        };
      }
    },

    /** In pages and in no order. Strongly consistent. */
    async *scan(only?: 'with_tenure'): AsyncGenerator<readonly ScannedItem[]> {
      let start: Item | undefined;
      do {
        const scan = {
          TableName: tableName,
          ConsistentRead: true,
          Limit: SCAN_PAGE_ITEMS,
          ExclusiveStartKey: start,
          ...(only === undefined ? {} : { FilterExpression: 'attribute_exists(tenure)' }),
        };
        const answer = await client.send(new ScanCommand(scan)).catch(unavailable);
        yield (answer.Items ?? []).flatMap((item) => {
          const key = markKeyOf(item['pk']?.S);
          return key === undefined ? [] : [{ key, stored: decode(key, item) ?? 'damaged' }];
        });
        start = answer.LastEvaluatedKey;
      } while (start !== undefined);
    },
  };
}

interface CancellationReason {
  readonly Code?: string;
  readonly Item?: Item;
}

function hasFailed(reason: CancellationReason | undefined): boolean {
  return reason?.Code === 'ConditionalCheckFailed';
}

export function undamaged(stored: Stored, publicKey: PublicKeyHex): MarkItem | undefined {
  if (stored === 'damaged') throw new SignerError('slashing_integrity', { detail: { public_key: publicKey } });
  return stored;
}

/** For `catch`: the store cannot be used for this request. */
export function unavailable(error: unknown): never {
  if (error instanceof SignerError) throw error;
  throw new SignerError('slashing_unavailable', { cause: error, detail: { fault: awsFault(error) } });
}
