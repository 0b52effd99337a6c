// A write transaction that is tried again until its outcome is known. The state table and the key table change through
// it; each says with an error of its own when a fault stays.

import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type DynamoDBClient, type TransactWriteItem, TransactWriteItemsCommand } from './dynamodb.ts';
import { type AwsFault, awsFault } from './errors.ts';

const MAX_TRANSACTION_ITEMS = 100;
/** The pause before a try grows by this, with jitter. */
const MAX_TRIES = 3;
export const RETRY_PAUSE_MS = 50;
/** Faults after which the same call may well succeed, or may have succeeded already. */
const PASSING_FAULTS: ReadonlySet<AwsFault> = new Set(['conflict', 'throttled', 'unreachable']);

/** `condition_failed` may also be the echo of our own write whose answer was lost: callers read back and compare. */
export type WriteOutcome = 'written' | 'condition_failed';

/** The same token in every try: the service applies the transaction once. @throws what the last try failed with */
export async function transactWrite(
  client: DynamoDBClient,
  items: readonly TransactWriteItem[],
): Promise<WriteOutcome> {
  assert(items.length <= MAX_TRANSACTION_ITEMS);
  const call = { TransactItems: [...items], ClientRequestToken: randomUUID() };
  for (let tries = 1; ; tries++) {
    try {
      await client.send(new TransactWriteItemsCommand(call));
      return 'written';
    } catch (error) {
      const fault = awsFault(error);
      if (fault === 'condition_failed') return 'condition_failed';
      if (tries === MAX_TRIES || !PASSING_FAULTS.has(fault)) throw error;
    }
    await pause(jittered(RETRY_PAUSE_MS * 2 ** tries));
  }
}

export function jittered(milliseconds: number): number {
  return milliseconds * (0.5 + Math.random() / 2);
}
