// Writes that are wanted at the same time share a request, which costs the client far more than each statement in it.
// Every write keeps a condition and an outcome of its own. A shared request is believed when it says that a write was
// applied; about all others the write is made again by itself, and its own condition decides. So a condition that
// failed, a throttled statement, a lost answer and a service that takes no statements end as they would without this
// file. A write that is alone never waits.

import type { Log } from '../../../../observe/log.ts';
import { partitionOf } from '../tables/items.ts';
import { isUpdate, MAX_STATEMENTS, type StatementOutcome, type Update } from '../tables/statements.ts';
import { type Replacement, type ReplaceOutcome, unavailable } from '../tables/table.ts';

/**
 * So many requests are sent with whatever there is; while they are under way further writes gather, and go when a
 * request is full.
 */
const EAGER_REQUESTS = 2;
/**
 * About what a write takes. After it nothing waits any longer behind requests that are slow, or will never be answered.
 */
const MAX_WAIT_MS = 10;

export interface GatherParts {
  /** One write by itself: the authority. */
  readonly replace: (replacement: Replacement) => Promise<ReplaceOutcome>;
  /** As `applyUpdates`. */
  readonly applyUpdates: (updates: readonly Update[]) => Promise<readonly StatementOutcome[]>;
  readonly log: Log;
}

interface Waiting {
  readonly update: Update;
  readonly resolve: (outcome: ReplaceOutcome | Promise<ReplaceOutcome>) => void;
  readonly reject: (error: unknown) => void;
}

/** Writes that wait are bounded by the caller: they are among its writes under way (`max_concurrent_writes`). */
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
    const { taken, left } = takeDistinct(waiting);
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

/** No item twice in one request: the later write waits, and finds what the earlier one left. */
function takeDistinct(waiting: readonly Waiting[]): { readonly taken: Waiting[]; readonly left: Waiting[] } {
  const partitions = new Set<string>();
  const [taken, left]: [Waiting[], Waiting[]] = [[], []];
  for (const one of waiting) {
    const partition = partitionOf(one.update.key);
    const goes = taken.length < MAX_STATEMENTS && !partitions.has(partition);
    (goes ? taken : left).push(one);
    if (goes) partitions.add(partition);
  }
  return { taken, left };
}
