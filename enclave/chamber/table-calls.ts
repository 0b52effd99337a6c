// How the state table is called: reads that are complete or fail, transactions that are tried again with one token
// until their outcome is known. A fault that stays is SignerError `state_stale`, with the fault or the row in its detail.

import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../api/errors.ts';
import {
  BatchGetItemCommand,
  type DynamoDBClient,
  TransactGetItemsCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '../aws/dynamodb.ts';
import { type AwsFault, awsFault } from '../aws/errors.ts';
import type { Item } from './state-rows.ts';

/** Tries of one transaction, each with the SDK's own attempts inside; the pause before a try grows by this, with jitter. */
const MAX_TRIES = 3;
const RETRY_PAUSE_MS = 50;
/** Rounds of one batch read while the service leaves rows unprocessed. */
const MAX_READ_ROUNDS = 5;
/** The service's own limit for one transaction. */
const MAX_TRANSACTION_ITEMS = 100;
/** Faults after which the same call may well succeed, or may have succeeded already. */
const PASSING_FAULTS: ReadonlySet<AwsFault> = new Set(['conflict', 'throttled', 'unreachable']);

/** `condition_failed` may also be the echo of our own write whose answer was lost: callers read back and compare. */
export type WriteOutcome = 'written' | 'condition_failed';

export function keyOf(pk: string): Item {
  return { pk: { S: pk } };
}

/** The rows that exist, by pk. @throws when the service leaves one unread */
export async function readBatch(
  client: DynamoDBClient,
  tableName: string,
  pks: readonly string[],
  projection: object = {},
): Promise<ReadonlyMap<string, Item>> {
  const rows = new Map<string, Item>();
  let wanted: Item[] = pks.map(keyOf);
  for (let round = 1; wanted.length > 0; round++) {
    if (round > MAX_READ_ROUNDS) throw new Error('the table leaves rows of a read unprocessed');
    if (round > 1) await pause(jittered(RETRY_PAUSE_MS * round));
    const RequestItems = { [tableName]: { Keys: wanted, ConsistentRead: true, ...projection } };
    const answer = await client.send(new BatchGetItemCommand({ RequestItems }));
    for (const item of answer.Responses?.[tableName] ?? []) rows.set(item['pk']?.S ?? '', item);
    wanted = answer.UnprocessedKeys?.[tableName]?.Keys ?? [];
  }
  return rows;
}

/** The rows that exist, by pk, all from one moment. */
export async function readSnapshot(
  client: DynamoDBClient,
  tableName: string,
  pks: readonly string[],
): Promise<ReadonlyMap<string, Item>> {
  const TransactItems = pks.map((pk) => ({ Get: { TableName: tableName, Key: keyOf(pk) } }));
  const answer = await sendReadTransaction(client, new TransactGetItemsCommand({ TransactItems }));
  assert.equal(answer.Responses?.length, pks.length);
  const items = answer.Responses.flatMap(({ Item }) => (Item === undefined ? [] : [Item]));
  return new Map(items.map((item) => [item['pk']?.S ?? '', item]));
}

/** The same token in every try: the service applies the transaction once, however many of them reach it. */
export async function transact(client: DynamoDBClient, items: readonly TransactWriteItem[]): Promise<WriteOutcome> {
  assert(items.length <= MAX_TRANSACTION_ITEMS);
  const call = { TransactItems: [...items], ClientRequestToken: randomUUID() };
  for (let tries = 1; ; tries++) {
    try {
      await client.send(new TransactWriteItemsCommand(call));
      return 'written';
    } catch (error) {
      const fault = awsFault(error);
      if (fault === 'condition_failed') return 'condition_failed';
      if (tries === MAX_TRIES || !PASSING_FAULTS.has(fault)) throw tableFault(error);
    }
    await pause(jittered(RETRY_PAUSE_MS * 2 ** tries));
  }
}

export async function reading<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw tableFault(error);
  }
}

/** The service cancels a read transaction that meets a write to one of its rows: that is no fault. */
async function sendReadTransaction(client: DynamoDBClient, command: TransactGetItemsCommand) {
  for (let tries = 1; ; tries++) {
    try {
      return await client.send(command);
    } catch (error) {
      if (tries === MAX_READ_ROUNDS || awsFault(error) !== 'conflict') throw error;
    }
    await pause(jittered(RETRY_PAUSE_MS * tries));
  }
}

function tableFault(cause: unknown): SignerError {
  const problem = cause instanceof Error ? cause.message : String(cause);
  return new SignerError('state_stale', { cause, detail: { fault: awsFault(cause), problem } });
}

function jittered(milliseconds: number): number {
  return milliseconds * (0.5 + Math.random() / 2);
}
