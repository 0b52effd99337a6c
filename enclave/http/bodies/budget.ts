// The memory for request bodies, over all connections. It is reserved as bytes arrive: a size that a client only
// announces costs nothing. The reserved memory is always the memory that request.ts holds. A body that finds no room is
// refused. No body waits for another one's room, so half-received bodies cannot block each other.

import { BODY_BUDGET_BYTES } from '../../api/limits.ts';
import type { RequestContext } from '../context.ts';

type Holder = Pick<RequestContext, 'bodyHolder' | 'bodyReservation' | 'caller'>;

export interface BodyBudget {
  /**
   * Room for a body that has grown: its first bytes as they are, later twice as much as before, while there is so much.
   * @param needed at most `limit` @param limit of this body @returns bytes that it may hold now, at least `needed`; 0
   * when there is no room
   */
  grow(holder: Holder, needed: number, limit?: number): number;
  /** No more than `bytes`; 0 gives everything back. */
  shrink(holder: Holder, bytes: number): void;
}

export function createBodyBudget(maxRequestBodyBytes: number): BodyBudget {
  /** What one token may hold: others go on while one floods. One body of any size that is allowed has room. */
  const callerBytes = Math.max(BODY_BUDGET_BYTES / 4, maxRequestBodyBytes);
  const heldByCaller = new Map<string, number>();
  let held = 0;

  const reserve = (holder: Holder, bytes: number): boolean => {
    const change = bytes - holder.bodyReservation;
    if (change === 0) return true;
    // While a body comes in a reload may give its caller another name: what it holds stays with the first one.
    const accessor = holder.bodyHolder ?? holder.caller?.accessor ?? '';
    const byCaller = (heldByCaller.get(accessor) ?? 0) + change;
    if (change > 0 && (held + change > BODY_BUDGET_BYTES || byCaller > callerBytes)) return false;
    held += change;
    holder.bodyReservation = bytes;
    holder.bodyHolder = accessor;
    if (byCaller === 0) heldByCaller.delete(accessor);
    else heldByCaller.set(accessor, byCaller);
    return true;
  };
  return {
    grow(holder, needed, limit = maxRequestBodyBytes) {
      const ample = Math.min(Math.max(needed, 2 * holder.bodyReservation), limit);
      if (reserve(holder, ample)) return ample;
      return reserve(holder, needed) ? needed : 0;
    },
    shrink(holder, bytes) {
      if (bytes < holder.bodyReservation) reserve(holder, bytes);
    },
  };
}
