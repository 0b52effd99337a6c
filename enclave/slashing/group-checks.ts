// The checks of one group of messages, which are answered together: each is queued, judged and recorded as if it came
// alone, and what becomes of one says nothing of the others. One listener serves all of them when the request is given
// up.

import type { CheckQueue, WaitingCheck } from './check-queue.ts';
import type { Decision } from './history/rules.ts';
import type { SlashableMessage } from './types.ts';

/** Of one message: what SlashingProtection.check resolves with, or what it would throw. */
export type GroupCheckOutcome = Decision | { readonly kind: 'failed'; readonly error: unknown };

/**
 * Queue a check for each message. Resolves when all are decided, in the order of the messages; never rejects.
 * @param signal checks that have not begun when it aborts fail with its reason
 */
export function waitForGroup(
  messages: readonly SlashableMessage[],
  signal: AbortSignal,
  queue: Pick<CheckQueue, 'add' | 'remove'>,
): Promise<readonly GroupCheckOutcome[]> {
  if (messages.length === 0) return Promise.resolve([]);
  return new Promise((resolve) => {
    const outcomes: GroupCheckOutcome[] = Array.from({ length: messages.length });
    const waiting = new Set<WaitingCheck>();
    let left = messages.length;
    const settle = (place: number, outcome: GroupCheckOutcome): void => {
      outcomes[place] = outcome;
      left -= 1;
      if (left > 0) return;
      signal.removeEventListener('abort', giveUp);
      resolve(outcomes);
    };
    const giveUp = (): void => {
      for (const check of waiting) {
        queue.remove(check);
        check.reject(signal.reason);
      }
    };
    signal.addEventListener('abort', giveUp, { once: true });
    for (const [place, message] of messages.entries()) {
      const check: WaitingCheck = {
        message,
        yields: true,
        resolve: (outcome) => settle(place, outcome),
        reject: (error) => settle(place, { kind: 'failed', error }),
        detach: () => void waiting.delete(check),
      };
      waiting.add(check);
      queue.add(check);
    }
  });
}
