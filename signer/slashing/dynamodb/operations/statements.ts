// BatchExecuteStatement: one UPDATE an item, each with its condition. Values are parameters and never part of the text.

import assert from 'node:assert/strict';
import {
  BatchExecuteStatementCommand,
  type BatchStatementRequest,
  type DynamoDBClient,
} from '../../../aws/dynamodb.ts';
import { awsFault } from '../../../aws/errors.ts';
import { type MarkItem, markAttributes, markPartition } from '../tables/items.ts';
import type { Replacement } from '../tables/table.ts';

/** The service's own limit for one request. */
export const MAX_STATEMENTS = 25;

/** `refused`: the service takes no such statements. `undecided`: anything else, also that it was applied. */
type StatementOutcome = 'applied' | 'refused' | 'undecided';

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
  const partitions = new Set(updates.map(({ key }) => markPartition(key)));
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
    Parameters: [...Object.values(set), { S: markPartition(key) }, ...Object.values(where)],
  };
}
