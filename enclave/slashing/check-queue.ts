// The order in which checks reach the backend: first come first served, but never two of one key at once. A key whose
// check is under way keeps its later ones back until it is released. Bounded by its owner, who asks for `size`.

import type { PublicKeyHex, SlashableMessage } from './types.ts';

export interface QueuedCheck {
  readonly message: SlashableMessage;
}

export interface CheckQueue<Check extends QueuedCheck> {
  /** Checks that wait. */
  readonly size: number;
  /** Keys of which a check could be taken now. */
  readonly takeable: number;
  /** Keys that were taken and not released. */
  readonly busy: number;
  add(check: Check): void;
  /** Take back a check that waits; nothing happens when it does not. */
  remove(check: Check): void;
  /** At most `limit` checks of as many different keys, which are busy from now on. */
  take(limit: number): Check[];
  /** The check that was taken of this key is over. */
  release(publicKey: PublicKeyHex): void;
  /** Empty the queue; what was in it. */
  drain(): Check[];
}

export function checkQueue<Check extends QueuedCheck>(): CheckQueue<Check> {
  const waiting = new Map<PublicKeyHex, Check[]>();
  /** Keys with waiting checks that are not busy, longest waiting first. */
  const ready = new Set<PublicKeyHex>();
  const busy = new Set<PublicKeyHex>();
  let size = 0;

  function takeFirst(publicKey: PublicKeyHex): Check | undefined {
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
      return ready.size;
    },
    get busy() {
      return busy.size;
    },
    add(check) {
      const { publicKey } = check.message;
      const others = waiting.get(publicKey);
      if (others === undefined) waiting.set(publicKey, [check]);
      else others.push(check);
      if (!busy.has(publicKey)) ready.add(publicKey);
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
    },
    take(limit) {
      const taken: Check[] = [];
      for (const publicKey of ready) {
        if (taken.length === limit) break;
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
      if (waiting.has(publicKey)) ready.add(publicKey);
    },
    drain() {
      const all = [...waiting.values()].flat();
      waiting.clear();
      ready.clear();
      size = 0;
      return all;
    },
  };
}
