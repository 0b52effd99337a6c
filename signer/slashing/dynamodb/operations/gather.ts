// Writes that are wanted at the same time share a request. It is believed when it says that a write was applied; about
// all others the write is made again by itself, and its own condition decides.

import { strict as assert } from 'node:assert';
import { setTimeout as pause } from 'node:timers/promises';
import { jittered } from '../../../../common/flow/backoff.ts';
import type { Log } from '../../../../common/observe/log.ts';
import { SignerError } from '../../../api/errors.ts';
import {
  BatchExecuteStatementCommand,
  type BatchStatementRequest,
  type DynamoDBClient,
} from '../../../aws/dynamodb.ts';
import { awsFault } from '../../../aws/errors.ts';
import type { StoreFloor } from '../../types.ts';
import { type MarkItem, markAttributes, partitionOf } from '../tables/items.ts';
import type { Store } from '../tables/store.ts';
import {
  MAX_BATCH_ITEMS,
  type Replacement,
  type ReplaceOutcome,
  type SlashingTable,
  unavailable,
} from '../tables/table.ts';

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

// BatchExecuteStatement: one UPDATE an item, each with its condition. Values are parameters and never part of the text.

/** The service's own limit for one request. */
export const MAX_STATEMENTS = 25;

/** `refused`: the service takes no such statements. `undecided`: anything else, also that it was applied. */
type StatementOutcome = 'applied' | 'refused' | 'undecided';

/** An UPDATE needs an item to begin with, and one form of statement needs the same attributes in all of them. */
interface Update extends Replacement {
  readonly expected: MarkItem;
}

function isUpdate(replacement: Replacement): replacement is Update {
  const { expected, next } = replacement;
  return isPlain(expected) && isPlain(next);
}

function isPlain(item: MarkItem | undefined): boolean {
  return item?.mark != null && item.mark.signingRoot !== null && item.tenure === 0 && item.signed === undefined;
}

/** At most MAX_STATEMENTS, no item twice. @returns in their order @throws when nothing is known of any of them */
async function applyUpdates(
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

// The first record of a kind that a key gets is judged by the floor of the store, in one transaction with the condition
// that this floor still holds. This process has one under way at a time, for they get in each other's way.

const MAX_TRIES = 12;
const CONFLICT_PAUSE_MS = 5;

/** `floor_changed`: judge again. `rolled_back`: the record holds less than this process has read of it before. */
type FirstOutcome = ReplaceOutcome | { readonly kind: 'floor_changed' } | { readonly kind: 'rolled_back' };

/** `floor`: what the write was judged by, as `store.floor` gave it. @throws SignerError */
export type FirstWrite = (replacement: Replacement, floor: StoreFloor | null) => Promise<FirstOutcome>;

interface WaitingFirst extends Pick<PromiseWithResolvers<FirstOutcome>, 'resolve' | 'reject'> {
  readonly replacement: Replacement;
  readonly floor: StoreFloor | null;
  readonly tries: number;
}

export function firstWrites(table: Pick<SlashingTable, 'replaceTogether'>, store: Store): FirstWrite {
  let waiting: WaitingFirst[] = [];
  let isUnderWay = false;

  async function sendAll(): Promise<void> {
    isUnderWay = true;
    // What starts together goes together.
    await Promise.resolve();
    while (waiting.length > 0) {
      const room = MAX_BATCH_ITEMS - 1; // and the guard
      const { taken, left } = takeDistinct(waiting, room);
      waiting = left;
      await send(taken).catch((error: unknown) => {
        for (const { reject } of taken) reject(error);
      });
    }
    isUnderWay = false;
  }

  async function send(taken: readonly WaitingFirst[]): Promise<void> {
    const { floor } = store;
    const writes = taken.filter((write) => write.floor === floor);
    for (const write of taken) if (write.floor !== floor) write.resolve({ kind: 'floor_changed' });
    if (writes.length === 0) return;
    const replacements = writes.map(({ replacement }) => replacement);
    const outcome = await table.replaceTogether(replacements, store.isStillBound());
    if (outcome.kind === 'replaced') {
      for (const { resolve } of writes) resolve({ kind: 'replaced' });
    } else if (outcome.kind === 'conflict') {
      await pause(jittered(CONFLICT_PAUSE_MS * (writes[0]?.tries ?? 1)));
      again(writes);
    } else if (outcome.isGuardBroken) {
      await store.read();
      store.assertUsable();
      // The known floor is the highest of all that were read.
      const kind = store.floor === floor ? 'rolled_back' : 'floor_changed';
      for (const { resolve } of writes) resolve({ kind });
    } else {
      again(writes.filter((_, index) => outcome.stored[index] === 'as_expected'));
      for (const [index, { resolve }] of writes.entries()) {
        const stored = outcome.stored[index];
        if (stored !== 'as_expected') resolve({ kind: 'changed', stored });
      }
    }
  }

  function again(writes: readonly WaitingFirst[]): void {
    for (const write of writes) {
      if (write.tries < MAX_TRIES) waiting.push({ ...write, tries: write.tries + 1 });
      else
        write.reject(
          new SignerError('slashing_unavailable', { detail: { contended: partitionOf(write.replacement.key) } }),
        );
    }
  }

  return (replacement, floor) =>
    new Promise<FirstOutcome>((resolve, reject) => {
      waiting.push({ replacement, floor, tries: 1, resolve, reject });
      if (!isUnderWay) void sendAll();
    });
}

/** No item twice: the later write of an item waits, and finds what the earlier one left. */
function takeDistinct<Write extends { readonly replacement: Replacement }>(waiting: readonly Write[], most: number) {
  const partitions = new Set<string>();
  const [taken, left]: [Write[], Write[]] = [[], []];
  for (const one of waiting) {
    const partition = partitionOf(one.replacement.key);
    const goes = taken.length < most && !partitions.has(partition);
    (goes ? taken : left).push(one);
    if (goes) partitions.add(partition);
  }
  return { taken, left };
}
