// Writes that are wanted at the same time share a request. It is believed when it says that a write was applied; about
// all others the write is made again by itself, and its own condition decides.

import { strict as assert } from 'node:assert';
import type { Log } from '../../../../common/observe/log.ts';
import {
  BatchExecuteStatementCommand,
  type BatchStatementRequest,
  type DynamoDBClient,
} from '../../../aws/dynamodb.ts';
import { awsFault } from '../../../aws/errors.ts';
import { type MarkItem, markAttributes, partitionOf, takeDistinct } from '../tables/items.ts';
import { type Replacement, type ReplaceOutcome, unavailable } from '../tables/table.ts';

/** While they are under way further writes gather. */
const EAGER_REQUESTS = 2;
/** About what a write takes. */
const MAX_WAIT_MS = 10;

export interface GatherParts {
  /** One write by itself: the authority. */
  readonly replace: (replacement: Replacement) => Promise<ReplaceOutcome>;
  readonly applyUpdates: (updates: readonly Update[]) => Promise<readonly StatementOutcome[]>;
  readonly log: Log;
}

interface Waiting {
  readonly update: Update;
  readonly resolve: (outcome: ReplaceOutcome | Promise<ReplaceOutcome>) => void;
  readonly reject: (error: unknown) => void;
}

export function gatheringReplace({ replace, applyUpdates, log }: GatherParts): GatherParts['replace'] {
  let waiting: Waiting[] = [];
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
    const { taken, left } = takeDistinct(waiting, MAX_STATEMENTS, ({ update }) => update.key);
    waiting = left;
    underWay += 1;
    void send(taken).finally(() => {
      underWay -= 1;
      schedule();
    });
  }

  /** Ends when the request is answered; never rejects. */
  async function send(writes: readonly Waiting[]): Promise<void> {
    try {
      const [first, ...others] = writes;
      if (first !== undefined && others.length === 0) return first.resolve(await replace(first.update));
      const outcomes = await applyUpdates(writes.map(({ update }) => update));
      if (outcomes.includes('refused')) refused();
      for (const [index, { update, resolve }] of writes.entries()) {
        resolve(outcomes[index] === 'applied' ? { kind: 'replaced' } : replace(update));
      }
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
  }

  function refused(): void {
    if (!isRefused) log.warn({}, NO_STATEMENTS);
    isRefused = true;
  }

  return (replacement) => {
    if (isRefused || !isUpdate(replacement)) return replace(replacement);
    return new Promise<ReplaceOutcome>((resolve, reject) => {
      waiting.push({ update: replacement, resolve, reject });
      schedule();
    }).catch(unavailable);
  };
}

const NO_STATEMENTS =
  'the slashing table takes no statements in batches, so each write is a request of its own until the next start, which is slower and as ' +
  'safe: allow the signer dynamodb:PartiQLUpdate on this table';

// BatchExecuteStatement: one UPDATE an item, each with its condition. Values are parameters and never part of the text.

/** The service's own limit for one request. */
export const MAX_STATEMENTS = 25;

/** `refused`: the service takes no such statements. `undecided`: anything else, also that it was applied. */
export type StatementOutcome = 'applied' | 'refused' | 'undecided';

/** An UPDATE needs an item to begin with, and one form of statement needs the same attributes in all of them. */
export interface Update extends Replacement {
  readonly expected: MarkItem;
}

export function isUpdate(replacement: Replacement): replacement is Update {
  const { expected, next } = replacement;
  return isPlain(expected) && isPlain(next);
}

function isPlain(item: MarkItem | undefined): boolean {
  return item?.mark != null && item.mark.signingRoot !== null && item.tenure === 0 && item.signed === undefined;
}

/** At most MAX_STATEMENTS, no item twice. @returns in their order @throws when nothing is known of any of them */
export async function applyUpdates(
  client: DynamoDBClient,
  tableName: string,
  updates: readonly Update[],
): Promise<readonly StatementOutcome[]> {
  assert(updates.length >= 1 && updates.length <= MAX_STATEMENTS);
  const partitions = new Set(updates.map(({ key }) => partitionOf(key)));
  assert.equal(partitions.size, updates.length, 'no item twice in one request');
  const Statements = updates.map((update) => statementOf(tableName, update));
  try {
    const { Responses = [] } = await client.send(new BatchExecuteStatementCommand({ Statements }));
    if (Responses.length !== updates.length) return updates.map(() => 'undecided');
    return Responses.map(({ Error: error }) => (error === undefined ? 'applied' : outcomeOf(error.Code)));
  } catch (error) {
    if (['throttled', 'unreachable'].includes(awsFault(error))) throw error;
    const outcome = outcomeOf(error instanceof Error ? error.name : undefined);
    return updates.map(() => outcome);
  }
}

/** A statement's (API_BatchStatementError), or the whole call's. */
const REFUSALS: ReadonlySet<string | undefined> = new Set([
  'AccessDenied',
  'AccessDeniedException',
  'ValidationError',
  'ValidationException',
  'UnknownOperationException',
]);

function outcomeOf(code: string | undefined): StatementOutcome {
  return REFUSALS.has(code) ? 'refused' : 'undecided';
}

/** Comma-separated assignments, as AWS's example of a batch has them (Running batch operations with PartiQL). */
function statementOf(tableName: string, { key, next, expected }: Update): BatchStatementRequest {
  assert(!tableName.includes('"'));
  const [set, where] = [markAttributes(next), markAttributes(expected)];
  const assignments = Object.keys(set).map((name) => `"${name}"=?`);
  const conditions = Object.keys(where).map((name) => `"${name}"=?`);
  return {
    // An UPDATE would leave `tenure` as it is: a key that was retired in between may not be written over.
    Statement:
      `UPDATE "${tableName}" SET ${assignments.join(',')} ` +
      `WHERE "pk"=? AND ${conditions.join(' AND ')} AND "tenure" IS MISSING`,
    Parameters: [...Object.values(set), { S: partitionOf(key) }, ...Object.values(where)],
  };
}
