// Several conditional writes in one request (BatchExecuteStatement): one UPDATE an item, each with the condition that
// the item is still the expected one, each applied or not by itself. The answer is trusted in one thing: a statement
// without an error was applied. The statements name every attribute of a mark; values are parameters and never part of
// the text.

import { strict as assert } from 'node:assert';
import {
  BatchExecuteStatementCommand,
  type BatchStatementRequest,
  type DynamoDBClient,
} from '../../../aws/dynamodb.ts';
import { awsFault } from '../../../aws/errors.ts';
import { type MarkItem, markAttributes, partitionOf } from './items.ts';
import type { Replacement } from './table.ts';

/** The service's own limit for one request. */
export const MAX_STATEMENTS = 25;

/**
 * `refused`: the service takes no such statements, from this role or at all. `undecided`: anything else, also that it
 * was applied.
 */
export type StatementOutcome = 'applied' | 'refused' | 'undecided';

/** An UPDATE needs an item to begin with, and one form of statement needs the same attributes in all of them. */
export interface Update extends Replacement {
  readonly expected: MarkItem;
}

export function isUpdate(replacement: Replacement): replacement is Update {
  const { expected, next } = replacement;
  return isPlain(expected) && isPlain(next);
}

/** As checks write them. All else is rare, and written by itself. */
function isPlain(item: MarkItem | undefined): boolean {
  return item?.mark != null && item.mark.signingRoot !== null && !item.isRetired && item.signed === undefined;
}

/**
 * At most MAX_STATEMENTS, no item twice.
 * @returns in their order
 * @throws what the call failed with, after the SDK's attempts: nothing is known of any of them
 */
export async function applyUpdates(
  client: DynamoDBClient,
  tableName: string,
  updates: readonly Update[],
): Promise<readonly StatementOutcome[]> {
  assert(updates.length >= 1 && updates.length <= MAX_STATEMENTS);
  assert.equal(
    new Set(updates.map(({ key }) => partitionOf(key))).size,
    updates.length,
    'no item twice in one request',
  );
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

/**
 * Comma-separated assignments, as AWS's own example of a batch has them (Developer Guide, Running batch operations with
 * PartiQL).
 */
function statementOf(tableName: string, { key, next, expected }: Update): BatchStatementRequest {
  assert(!tableName.includes('"'));
  const [set, where] = [markAttributes(next), markAttributes(expected)];
  const assignments = Object.keys(set).map((name) => `"${name}"=?`);
  const conditions = Object.keys(where).map((name) => `"${name}"=?`);
  return {
    // A key that was retired in between may not be written over: an UPDATE would leave that attribute as it is.
    Statement:
      `UPDATE "${tableName}" SET ${assignments.join(',')} ` +
      `WHERE "pk"=? AND ${conditions.join(' AND ')} AND "retired" IS MISSING`,
    Parameters: [...Object.values(set), { S: partitionOf(key) }, ...Object.values(where)],
  };
}
