// Writes that are wanted at the same time share a request. It is believed when it says that a write was applied; about
// all others the write is made again by itself, and its own condition decides.

import type { Log } from '../../../../common/observe/log.ts';
import type { DynamoDBClient } from '../../../aws/dynamodb.ts';
import { type ReplaceOutcome, type SlashingTable, unavailable } from '../tables/table.ts';
import { takeDistinct } from './first-writes.ts';
import { applyUpdates, isUpdate, MAX_STATEMENTS, type Update } from './statements.ts';

/** While they are under way further writes gather. */
const EAGER_REQUESTS = 2;
/** About what a write takes. */
const MAX_WAIT_MS = 10;

interface WaitingUpdate extends Pick<PromiseWithResolvers<ReplaceOutcome>, 'resolve' | 'reject'> {
  readonly replacement: Update;
}

/** @param replace one write by itself: the authority */
export function gatheringReplace(
  client: DynamoDBClient,
  tableName: string,
  replace: SlashingTable['replace'],
  log: Log,
): SlashingTable['replace'] {
  let waiting: WaitingUpdate[] = [];
  let underWay = 0;
  let isScheduled = false;
  let isRefused = false;
  let isTimed = false;

  /** At the end of the turn: what starts together goes together. */
  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    queueMicrotask(() => {
      isScheduled = false;
      while (waiting.length >= MAX_STATEMENTS || (waiting.length > 0 && underWay < EAGER_REQUESTS)) sendSome();
      if (waiting.length === 0 || isTimed) return;
      isTimed = true;
      setTimeout(sendAll, MAX_WAIT_MS);
    });
  }

  function sendAll(): void {
    isTimed = false;
    while (waiting.length > 0) sendSome();
  }

  function sendSome(): void {
    const { taken, left } = takeDistinct(waiting, MAX_STATEMENTS);
    waiting = left;
    underWay += 1;
    void send(taken).finally(() => {
      underWay -= 1;
      schedule();
    });
  }

  async function send(writes: readonly WaitingUpdate[]): Promise<void> {
    try {
      const [first, ...others] = writes;
      if (first !== undefined && others.length === 0) return first.resolve(await replace(first.replacement));
      const outcomes = await applyUpdates(
        client,
        tableName,
        writes.map(({ replacement }) => replacement),
      );
      if (outcomes.includes('refused')) {
        if (!isRefused) log.warn({}, NO_STATEMENTS);
        isRefused = true;
      }
      for (const [index, { replacement, resolve }] of writes.entries()) {
        resolve(outcomes[index] === 'applied' ? { kind: 'replaced' } : replace(replacement));
      }
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
  }

  return (replacement) => {
    if (isRefused || !isUpdate(replacement)) return replace(replacement);
    return new Promise<ReplaceOutcome>((resolve, reject) => {
      waiting.push({ replacement, resolve, reject });
      schedule();
    }).catch(unavailable);
  };
}

const NO_STATEMENTS =
  'the slashing table takes no statements in batches, so each write is a request of its own until the next start, which is slower and as ' +
  'safe: allow the signer dynamodb:PartiQLUpdate on this table';
