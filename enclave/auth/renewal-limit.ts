// How often one token may renew itself on this replica. A renewal is a write that every replica has to read, and the holder
// of any client token may ask for it: without a limit the least credential could keep the cluster busy.

import type { Clock } from '../observe/clock.ts';
import { MAX_TOKENS } from './auth-state.ts';

export const MAX_RENEWALS_PER_WINDOW = 10;
export const RENEWAL_WINDOW_SECONDS = 10;

export interface RenewalLimit {
  /** Whether the token may renew itself now; if so, that is counted. */
  admits(accessor: string): boolean;
}

export function renewalLimit(clock: Pick<Clock, 'monotonic'>): RenewalLimit {
  const renewals = new Map<string, number>();
  let windowStart = clock.monotonic();
  return {
    admits(accessor) {
      const now = clock.monotonic();
      if (now - windowStart >= RENEWAL_WINDOW_SECONDS * 1000 || renewals.size > MAX_TOKENS) {
        renewals.clear();
        windowStart = now;
      }
      const count = renewals.get(accessor) ?? 0;
      if (count >= MAX_RENEWALS_PER_WINDOW) return false;
      renewals.set(accessor, count + 1);
      return true;
    },
  };
}
