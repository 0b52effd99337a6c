// The checks of one group of messages, which are answered together. Each check is queued, judged and recorded as a
// single one would be, and its result does not affect the others. One listener serves all of them when the client gives
// the request up.

import type { CheckQueue, WaitingCheck } from './check-queue.ts';
import type { Decision } from './history/rules.ts';
import type { SlashableMessage } from './types.ts';

/** What became of one message: what SlashingProtection.check resolves with, or what it would throw. */
export type GroupCheckOutcome = Decision | { readonly kind: 'failed'; readonly error: unknown };

type GroupQueue = Pick<CheckQueue, 'add' | 'remove'>;

/**
 * Queue a check for each message. Resolves when all are decided, in the order of the messages; never rejects.
 * @param signal checks that have not begun when it aborts fail with its reason
 */
export function waitForGroup(
  messages: readonly SlashableMessage[],
  signal: AbortSignal,
  queue: GroupQueue,
): Promise<readonly GroupCheckOutcome[]> {
  if (messages.length === 0) return Promise.resolve([]);
  return new Promise((resolve) => {
    const group = new CheckGroup(messages.length, { signal, queue, resolve });
    for (const message of messages) group.add(message);
  });
}

interface GroupOwner {
  readonly signal: AbortSignal;
  readonly queue: GroupQueue;
  readonly resolve: (outcomes: readonly GroupCheckOutcome[]) => void;
}

class CheckGroup {
  readonly #owner: GroupOwner;
  readonly #outcomes: GroupCheckOutcome[];
  readonly #checks: GroupedCheck[] = [];
  #left: number;
  readonly #giveUp = (): void => {
    for (const check of this.#checks) {
      if (check.hasBegun) continue;
      this.#owner.queue.remove(check);
      check.reject(this.#owner.signal.reason);
    }
  };

  constructor(size: number, owner: GroupOwner) {
    this.#owner = owner;
    this.#outcomes = Array.from({ length: size });
    this.#left = size;
    owner.signal.addEventListener('abort', this.#giveUp, { once: true });
  }

  add(message: SlashableMessage): void {
    const check = new GroupedCheck(message, this, this.#checks.length);
    this.#checks.push(check);
    this.#owner.queue.add(check);
  }

  settle(place: number, outcome: GroupCheckOutcome): void {
    this.#outcomes[place] = outcome;
    this.#left -= 1;
    if (this.#left > 0) return;
    this.#owner.signal.removeEventListener('abort', this.#giveUp);
    this.#owner.resolve(this.#outcomes);
  }
}

/** One object a check and no closures: a large batch has thousands of them under way. */
class GroupedCheck implements WaitingCheck {
  readonly message: SlashableMessage;
  readonly yields = true;
  hasBegun = false;
  readonly #group: CheckGroup;
  readonly #place: number;

  constructor(message: SlashableMessage, group: CheckGroup, place: number) {
    this.message = message;
    this.#group = group;
    this.#place = place;
  }

  resolve(outcome: Decision): void {
    this.#group.settle(this.#place, outcome);
  }

  reject(error: unknown): void {
    this.#group.settle(this.#place, { kind: 'failed', error });
  }

  detach(): void {
    this.hasBegun = true;
  }
}
