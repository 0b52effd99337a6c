// The calls on the rows of the binding. An outcome that is unclear is an error (`state_stale`), and never an answer.

import {
  type DynamoDBClient,
  GetItemCommand,
  type Item,
  onAnswerDate,
  PutItemCommand,
  UpdateItemCommand,
} from '../aws/dynamodb.ts';
import { awsFault } from '../aws/errors.ts';
import {
  type BindingCodes,
  type BindingRow,
  type BoundStore,
  decodeBinding,
  encodeBound,
  SLASHING_STORE,
  SLASHING_STORE_END,
} from './binding-row.ts';
import { reading, stateRowKey } from './state-table.ts';

interface LeaseBeat {
  readonly replica: string;
  readonly beatAt: string;
}

export interface BindingReading {
  readonly row: BindingRow | undefined;
  /** The time of the answer by the clock of the table's service, in whole seconds; milliseconds since the epoch. */
  readonly tableTime: number | undefined;
}

export type BindingTable = ReturnType<typeof bindingTable>;

export function bindingTable(client: DynamoDBClient, tableName: string, codes: BindingCodes) {
  const Key = stateRowKey(SLASHING_STORE);

  async function read(): Promise<BindingReading> {
    const call = new GetItemCommand({ TableName: tableName, Key, ConsistentRead: true });
    let tableTime: number | undefined;
    onAnswerDate(call, (date) => {
      tableTime = date;
    });
    const row = await reading(async () => decodeBinding((await client.send(call)).Item, codes));
    return { row, tableTime };
  }

  /** When an answer is lost the SDK tries again, and the second attempt meets what the first one wrote. */
  async function ifWritten(next: BoundStore, replica: string): Promise<BindingRow | undefined> {
    const { row } = await read();
    const isOurs =
      row?.replica === replica && row.isAuthentic && codes.binding(next).equals(row.mac ?? Buffer.alloc(0));
    return isOurs ? row : undefined;
  }

  return {
    read,

    /** While the HMAC is still that of `previous`: signers that change nothing do not disturb others. */
    beat: (previous: BindingRow, next: BoundStore, { replica, beatAt }: LeaseBeat) =>
      reading(async () => {
        const bound = encodeBound(next, codes);
        const call = new UpdateItemCommand({
          TableName: tableName,
          Key,
          UpdateExpression:
            'SET store_id = :store_id, binding = :binding, incarnation = :incarnation, signers = :signers, mac = :mac, ' +
            'replica = :replica, beat_at = :beat_at ADD heartbeat :one',
          ConditionExpression: 'mac = :previous',
          ExpressionAttributeValues: {
            ...Object.fromEntries(Object.entries(bound).map(([name, value]) => [`:${name}`, value])),
            ':previous': { B: previous.mac ?? new Uint8Array() },
            ':replica': { S: replica },
            ':beat_at': { S: beatAt },
            ':one': { N: '1' },
          },
          ReturnValues: 'ALL_NEW',
        });
        const answer = await unlessRefused(() => client.send(call));
        return answer === 'refused' ? ifWritten(next, replica) : decodeBinding(answer.Attributes, codes);
      }),

    /** On the condition that the row is still `previous`, its heartbeat included. */
    bind: (previous: BindingRow | undefined, next: BoundStore, { replica, beatAt }: LeaseBeat) =>
      reading(async () => {
        const item: Item = {
          pk: { S: SLASHING_STORE },
          ...encodeBound(next, codes),
          heartbeat: { N: String((previous?.heartbeat ?? 0) + 1) },
          replica: { S: replica },
          beat_at: { S: beatAt },
        };
        const call = new PutItemCommand({ TableName: tableName, Item: item, ...isStill(previous) });
        if ((await unlessRefused(() => client.send(call))) === 'refused') return ifWritten(next, replica);
        return decodeBinding(item, codes);
      }),

    /** Whether no signer went on from this end, or a later one; none does again. An answer that was lost is a no. */
    useEnd: (closedAt: number) =>
      reading(async () => {
        const call = new UpdateItemCommand({
          TableName: tableName,
          Key: stateRowKey(SLASHING_STORE_END),
          UpdateExpression: 'SET closed_at = :closed_at',
          ConditionExpression: 'attribute_not_exists(pk) OR closed_at < :closed_at',
          ExpressionAttributeValues: { ':closed_at': { N: String(closedAt) } },
        });
        return (await unlessRefused(() => client.send(call))) !== 'refused';
      }),
  };
}

function isStill(previous: BindingRow | undefined): object {
  if (previous === undefined) return { ConditionExpression: 'attribute_not_exists(pk)' };
  const { mac, heartbeat } = previous;
  return {
    ConditionExpression: `heartbeat = :heartbeat AND ${mac === undefined ? 'attribute_not_exists(mac)' : 'mac = :mac'}`,
    ExpressionAttributeValues: {
      ':heartbeat': { N: String(heartbeat) },
      ...(mac === undefined ? {} : { ':mac': { B: mac } }),
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
