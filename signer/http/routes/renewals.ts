// A renewal is a commit that every replica has to read: the least credential could keep the cluster busy.

import type { Clock } from '../../../common/observe/clock.ts';
import type { TokenRecord } from '../../api/auth.ts';
import { findToken, tokenRecord } from '../../auth/stateful/snapshot.ts';
import { MAX_TOKENS } from '../../auth/stateful/state.ts';
import type { ChangeRefused, Done, StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { renewedLifetimeSeconds, renewToken } from '../../auth/stateful/tokens.ts';

/** The next renewal counts after half of the lifetime that the last one gave, within these bounds. */
export const SHORTEST_PAUSE_SECONDS = 5;
export const LONGEST_PAUSE_SECONDS = 60;

type Renewals = (accessor: string, ttlSeconds: number | undefined) => Promise<Done<TokenRecord> | ChangeRefused>;

export function pacedRenewals(auth: StatefulAuthenticator, clock: Pick<Clock, 'monotonic'>): Renewals {
  const nextAt = new Map<string, number>();
  return async (accessor, ttlSeconds) => {
    const { snapshot } = auth;
    const token = findToken(snapshot, accessor);
    if (token === undefined || token.ttlSeconds === null) return renewToken(auth, accessor, ttlSeconds);
    const now = clock.monotonic();
    const early = now < (nextAt.get(accessor) ?? Number.NEGATIVE_INFINITY);
    if (early) return { kind: 'done', answer: tokenRecord(snapshot, token) };
    if (nextAt.size >= MAX_TOKENS) forgetPast(nextAt, now);
    nextAt.set(accessor, now + pauseSeconds(renewedLifetimeSeconds(token.ttlSeconds, ttlSeconds)) * 1000);
    let renewed = false;
    try {
      const outcome = await renewToken(auth, accessor, ttlSeconds);
      renewed = outcome.kind === 'done';
      return outcome;
    } finally {
      if (!renewed) nextAt.delete(accessor); // it may be asked for again at once
    }
  };
}

function pauseSeconds(lifetimeSeconds: number): number {
  return Math.min(Math.max(lifetimeSeconds / 2, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS);
}

function forgetPast(nextAt: Map<string, number>, now: number): void {
  for (const [accessor, at] of nextAt) if (at <= now) nextAt.delete(accessor);
}
