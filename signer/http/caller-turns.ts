// Callers take turns before a body is read: a request of one token would wait behind the bodies of hundreds of another
// that came in the same turn of the event loop.

import { CallerLines } from '../../common/flow/caller-lines.ts';

export const MAX_PER_TURN = 16;
export const MAX_WAITING_OF_CALLER = 4096;
/** Of all callers; beyond it a caller has one place. */
export const MAX_WAITING = 2 * MAX_WAITING_OF_CALLER;
/** Two epochs of 32 slots: a client that has validators asks in each epoch. */
const ALONE_AFTER_MS = 2 * 32 * 12_000;

export type Proceed = (hasWaited: boolean) => void;

export interface CallerTurns {
  /** @returns false when there is no place to wait; then `proceed` is not called */
  takeTurn(caller: string, proceed: Proceed): boolean;
  readonly waiting: number;
}

interface EventLoop {
  nextTurn(work: () => void): void;
  monotonic(): number;
}

export function callerTurns({ nextTurn, monotonic }: EventLoop): CallerTurns {
  const lines = new CallerLines<Proceed>();
  const went = new Set<string>();
  let wentOn = 0;
  let isTurnPlanned = false;
  let latest: { readonly caller: string; at: number } | undefined;
  let sharedUntil = Number.NEGATIVE_INFINITY;

  const planTurn = (): void => {
    if (isTurnPlanned) return;
    isTurnPlanned = true;
    nextTurn(beginTurn);
  };
  const count = (caller: string): void => {
    went.add(caller);
    wentOn += 1;
    planTurn();
  };
  const beginTurn = (): void => {
    isTurnPlanned = false;
    went.clear();
    wentOn = 0;
    for (let places = MAX_PER_TURN; places > 0; places--) letNextGo();
  };
  const letNextGo = (): void => {
    const next = lines.take();
    if (next === undefined) return;
    count(next.caller);
    next.item(true);
  };
  const isShared = (caller: string): boolean => {
    const now = monotonic();
    if (caller === latest?.caller) latest.at = now;
    else {
      if (latest !== undefined) sharedUntil = latest.at + ALONE_AFTER_MS;
      latest = { caller, at: now };
    }
    return now < sharedUntil;
  };

  return {
    takeTurn(caller, proceed) {
      if (!isShared(caller) && lines.size === 0) {
        proceed(false);
        return true;
      }
      const places = lines.sizeOf(caller);
      if (places === 0 && (wentOn < MAX_PER_TURN || !went.has(caller))) {
        count(caller);
        proceed(false);
        return true;
      }
      if (places >= (lines.size < MAX_WAITING ? MAX_WAITING_OF_CALLER : 1)) return false;
      lines.push(caller, proceed);
      planTurn();
      return true;
    },
    get waiting() {
      return lines.size;
    },
  };
}
