// The order in which checks reach the backend: first come, first served, but never two checks of one key at once.
// Checks of groups wait behind checks for one key, but get a fixed share. The owner bounds the queue, by `size`.

import type { Decision } from './history/rules.ts';
import { keyLine } from './key-line.ts';
import type { PublicKeyHex, SlashableMessage } from './types.ts';

const MAX_PASSED_OVER = 4;

export interface WaitingCheck {
  readonly message: SlashableMessage;
  /** Others may overtake it, of other keys only. */
  readonly yields: boolean;
  /** Asked once more by the signer itself. */
  readonly isAgain?: boolean;
  resolve(outcome: Decision): void;
  reject(error: unknown): void;
  detach(): void;
}

export type CheckQueue = ReturnType<typeof checkQueue>;

export function checkQueue() {
  const waiting = new Map<PublicKeyHex, WaitingCheck[]>();
  /** Keys with waiting checks that are not busy, longest waiting first; and such keys of which every check yields. */
  const ready = keyLine();
  const yielding = keyLine();
  const busy = new Set<PublicKeyHex>();
  let size = 0;
  let passedOver = 0;

  function makeReady(publicKey: PublicKeyHex, checks: readonly WaitingCheck[]): void {
    if (checks.every(({ yields }) => yields)) yielding.add(publicKey);
    else {
      yielding.delete(publicKey);
      ready.add(publicKey);
    }
  }

  function nextKey(mayYield: boolean): PublicKeyHex | undefined {
    const { first } = ready;
    const behind = mayYield ? yielding.first : undefined;
    if (behind === undefined) return first;
    if (first !== undefined && passedOver < MAX_PASSED_OVER) {
      passedOver += 1;
      return first;
    }
    passedOver = 0;
    return behind;
  }

  return {
    get size() {
      return size;
    },
    get takeable() {
      return ready.size + yielding.size;
    },
    get hasOthers() {
      return ready.size > 0;
    },
    get busy() {
      return busy.size;
    },
    add(check: WaitingCheck): void {
      const { publicKey } = check.message;
      const earlier = waiting.get(publicKey);
      earlier?.push(check);
      const checks = earlier ?? [check];
      if (earlier === undefined) waiting.set(publicKey, checks);
      if (!busy.has(publicKey)) makeReady(publicKey, checks);
      size += 1;
    },
    remove(check: WaitingCheck): void {
      const { publicKey } = check.message;
      const checks = waiting.get(publicKey);
      const position = checks?.indexOf(check) ?? -1;
      if (checks === undefined || position === -1) return;
      checks.splice(position, 1);
      size -= 1;
      if (checks.length > 0) return;
      waiting.delete(publicKey);
      ready.delete(publicKey);
      yielding.delete(publicKey);
    },
    take(limits: { readonly all: number; readonly yielding: number }): WaitingCheck[] {
      const taken: WaitingCheck[] = [];
      let yielded = 0;
      while (taken.length < limits.all) {
        const publicKey = nextKey(yielded < limits.yielding);
        if (publicKey === undefined) break;
        if (yielding.delete(publicKey)) yielded += 1;
        ready.delete(publicKey);
        const checks = waiting.get(publicKey);
        const check = checks?.shift();
        if (checks?.length === 0) waiting.delete(publicKey);
        if (check === undefined) continue;
        busy.add(publicKey);
        taken.push(check);
      }
      size -= taken.length;
      return taken;
    },
    release(publicKey: PublicKeyHex): void {
      busy.delete(publicKey);
      const checks = waiting.get(publicKey);
      if (checks !== undefined) makeReady(publicKey, checks);
    },
    drain(): WaitingCheck[] {
      const all = [...waiting.values()].flat();
      waiting.clear();
      ready.clear();
      yielding.clear();
      size = 0;
      return all;
    },
  };
}

export type GroupCheckOutcome = Decision | { readonly kind: 'failed'; readonly error: unknown };

/** Resolves when all are decided, in the order of the messages; never rejects. @param signal ends those not begun */
export function waitForGroup(
  messages: readonly SlashableMessage[],
  signal: AbortSignal,
  queue: Pick<CheckQueue, 'add' | 'remove'>,
): Promise<readonly GroupCheckOutcome[]> {
  if (messages.length === 0) return Promise.resolve([]);
  const { promise, resolve } = Promise.withResolvers<readonly GroupCheckOutcome[]>();
  const outcomes: GroupCheckOutcome[] = Array.from({ length: messages.length });
  let left = messages.length;
  const settle = (place: number, outcome: GroupCheckOutcome): void => {
    outcomes[place] = outcome;
    left -= 1;
    if (left > 0) return;
    signal.removeEventListener('abort', giveUp);
    resolve(outcomes);
  };
  const checks = messages.map((message, place) => new GroupedCheck(message, place, settle));
  const giveUp = (): void => {
    for (const check of checks) {
      if (check.hasBegun) continue;
      queue.remove(check);
      check.reject(signal.reason);
    }
  };
  signal.addEventListener('abort', giveUp, { once: true });
  for (const check of checks) queue.add(check);
  return promise;
}

/** One object a check and no closures: a large batch has thousands of them under way. */
class GroupedCheck implements WaitingCheck {
  readonly message: SlashableMessage;
  readonly yields = true;
  hasBegun = false;
  readonly #place: number;
  readonly #settle: (place: number, outcome: GroupCheckOutcome) => void;

  constructor(message: SlashableMessage, place: number, settle: (place: number, outcome: GroupCheckOutcome) => void) {
    this.message = message;
    this.#place = place;
    this.#settle = settle;
  }

  resolve(outcome: Decision): void {
    this.#settle(this.#place, outcome);
  }

  reject(error: unknown): void {
    this.#settle(this.#place, { kind: 'failed', error });
  }

  detach(): void {
    this.hasBegun = true;
  }
}
