// The memory for request bodies, over all connections, reserved as bytes arrive. A body without room is refused and
// never waits, so half-received bodies cannot block each other.

import { BODY_BUDGET_BYTES } from '../api/primitives.ts';
import type { RequestContext } from './context.ts';

type Holder = Pick<RequestContext, 'bodyHolder' | 'bodyReservation' | 'caller'>;

interface BodyBudget {
  /** Twice as much as before, while there is so much. @returns bytes, at least `needed`; 0 when there is no room */
  grow(holder: Holder, needed: number, limit?: number): number;
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
