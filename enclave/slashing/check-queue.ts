// The order in which checks reach the backend: first come, first served, but never two checks of one key at once. While
// a check of a key is under way, the later checks of this key wait. Checks of groups wait behind checks for one key,
// but get a fixed share. The owner bounds the queue, by `size`.

import type { Decision } from './history/rules.ts';
import { keyLine } from './key-line.ts';
import type { PublicKeyHex, SlashableMessage } from './types.ts';

/** How often in a row a check of a group is passed over. */
const MAX_PASSED_OVER = 4;

export interface WaitingCheck {
  readonly message: SlashableMessage;
  /** It came with a group: others may overtake it, of other keys only. */
  readonly yields: boolean;
  resolve(outcome: Decision): void;
  reject(error: unknown): void;
  /** Stop listening to the request's signal: its check begins, or will never begin. */
  detach(): void;
}

export interface TakeLimits {
  readonly all: number;
  /** The most of them that may yield. */
  readonly yielding: number;
}

export interface CheckQueue {
  /** Checks that wait. */
  readonly size: number;
  /** Keys of which a check could be taken now. */
  readonly takeable: number;
  /** Whether a check that does not yield could be taken now. */
  readonly hasOthers: boolean;
  /** Keys that were taken and not released. */
  readonly busy: number;
  add(check: WaitingCheck): void;
  /** Take back a check that waits; nothing happens when it does not. */
  remove(check: WaitingCheck): void;
  /** Checks of as many different keys, which are busy from now on. */
  take(limits: TakeLimits): WaitingCheck[];
  /** The check that was taken of this key is over. */
  release(publicKey: PublicKeyHex): void;
  /** Empty the queue; what was in it. */
  drain(): WaitingCheck[];
}

export function checkQueue(): CheckQueue {
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

  function takeFirst(publicKey: PublicKeyHex): WaitingCheck | undefined {
    const checks = waiting.get(publicKey);
    const first = checks?.shift();
    if (checks?.length === 0) waiting.delete(publicKey);
    return first;
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
    add(check) {
      const { publicKey } = check.message;
      const earlier = waiting.get(publicKey);
      earlier?.push(check);
      const checks = earlier ?? [check];
      if (earlier === undefined) waiting.set(publicKey, checks);
      if (!busy.has(publicKey)) makeReady(publicKey, checks);
      size += 1;
    },
    remove(check) {
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
    take(limits) {
      const taken: WaitingCheck[] = [];
      let yielded = 0;
      while (taken.length < limits.all) {
        const publicKey = nextKey(yielded < limits.yielding);
        if (publicKey === undefined) break;
        if (yielding.delete(publicKey)) yielded += 1;
        ready.delete(publicKey);
        const check = takeFirst(publicKey);
        if (check === undefined) continue;
        busy.add(publicKey);
        taken.push(check);
      }
      size -= taken.length;
      return taken;
    },
    release(publicKey) {
      busy.delete(publicKey);
      const checks = waiting.get(publicKey);
      if (checks !== undefined) makeReady(publicKey, checks);
    },
    drain() {
      const all = [...waiting.values()].flat();
      waiting.clear();
      ready.clear();
      yielding.clear();
      size = 0;
      return all;
    },
  };
}
