// The calls on the row SLASHING_STORE: conditional writes and strongly consistent reads. When the outcome is unclear
// after the SDK's attempts, the result is an error (`state_stale`), and never an answer.

import { type DynamoDBClient, GetItemCommand, type Item, PutItemCommand, UpdateItemCommand } from '../aws/dynamodb.ts';
import { awsFault } from '../aws/errors.ts';
import { type BindingCodes, type BindingRow, type BoundStore, decodeBinding, SLASHING_STORE } from './binding-row.ts';
import { keyOf, reading } from './table-calls.ts';

/** Who writes. */
export interface Beat {
  readonly replica: string;
  /** RFC 3339. */
  readonly beatAt: string;
}

/** Every method throws SignerError `state_stale` when the table cannot be used. */
export interface BindingTable {
  read(): Promise<BindingRow | undefined>;
  /** The row with its heartbeat moved; undefined when the fleet is bound otherwise, or to nothing. */
  beat(store: BoundStore, beat: Beat): Promise<BindingRow | undefined>;
  /** Bind the fleet to `next`, on the condition that the row is still `previous`, its heartbeat included. */
  bind(
    previous: BindingRow | undefined,
    next: BoundStore & { readonly revision: number },
    beat: Beat,
  ): Promise<boolean>;
  /** Note a revision of the bound store, unless a higher one is noted. */
  noteRevision(store: BoundStore, revision: number): Promise<void>;
}

export function bindingTable(client: DynamoDBClient, tableName: string, codes: BindingCodes): BindingTable {
  const Key = keyOf(SLASHING_STORE);

  async function read(): Promise<BindingRow | undefined> {
    const call = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true });
    return reading(async () => decodeBinding((await client.send(call)).Item, codes));
  }

  return {
    read,

    beat: (store, { replica, beatAt }) =>
      reading(async () => {
        const call = new UpdateItemCommand({
          TableName: tableName,
          Key,
          UpdateExpression: 'SET replica = :replica, beat_at = :beat_at ADD heartbeat :one',
          ConditionExpression: IS_BOUND,
          ExpressionAttributeValues: {
            ...boundValues(store, codes),
            ':replica': { S: replica },
            ':beat_at': { S: beatAt },
            ':one': { N: '1' },
          },
          ReturnValues: 'ALL_NEW',
        });
        const answer = await unlessRefused(() => client.send(call));
        return answer === 'refused' ? undefined : decodeBinding(answer.Attributes, codes);
      }),

    bind: (previous, next, { replica, beatAt }) =>
      reading(async () => {
        const item: Item = {
          pk: { S: SLASHING_STORE },
          store_id: { S: next.storeId },
          seat: { S: next.seat },
          binding: { N: String(next.binding) },
          mac: { B: codes.binding(next) },
          revision: { N: String(next.revision) },
          revision_mac: { B: codes.revision(next, next.revision) },
          heartbeat: { N: String((previous?.heartbeat ?? 0) + 1) },
          replica: { S: replica },
          beat_at: { S: beatAt },
        };
        const call = new PutItemCommand({ TableName: tableName, Item: item, ...isStill(previous) });
        if ((await unlessRefused(() => client.send(call))) !== 'refused') return true;
        // An answer that was lost makes the SDK's next attempt meet what the first one wrote.
        const stored = await read();
        return stored?.storeId === next.storeId && stored.binding === next.binding && stored.replica === replica;
      }),

    noteRevision: (store, revision) =>
      reading(async () => {
        const call = new UpdateItemCommand({
          TableName: tableName,
          Key,
          UpdateExpression: 'SET revision = :revision, revision_mac = :revision_mac',
          ConditionExpression: `${IS_BOUND} AND revision < :revision`,
          ExpressionAttributeValues: {
            ...boundValues(store, codes),
            ':revision': { N: String(revision) },
            ':revision_mac': { B: codes.revision(store, revision) },
          },
        });
        await unlessRefused(() => client.send(call));
      }),
  };
}

const IS_BOUND = 'store_id = :store_id AND binding = :binding AND mac = :mac';

function boundValues(store: BoundStore, codes: BindingCodes): Item {
  return {
    ':store_id': { S: store.storeId },
    ':binding': { N: String(store.binding) },
    ':mac': { B: codes.binding(store) },
  };
}

function isStill(previous: BindingRow | undefined): object {
  if (previous === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  return {
    ConditionExpression: 'store_id = :store_id AND binding = :binding AND heartbeat = :heartbeat',
    ExpressionAttributeValues: {
      ':store_id': { S: previous.storeId },
      ':binding': { N: String(previous.binding) },
      ':heartbeat': { N: String(previous.heartbeat) },
    },
  };
}

/** Only a condition that did not hold is an answer. */
async function unlessRefused<Answer>(send: () => Promise<Answer>): Promise<Answer | 'refused'> {
  try {
    return await send();
  } catch (error) {
    if (awsFault(error) === 'condition_failed') return 'refused';
    throw error;
  }
}
