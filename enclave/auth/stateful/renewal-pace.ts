// How often a token's renewals are written. A renewal is a commit that every replica has to read, and the holder of any
// client token may ask for it: without a pace the least credential could keep the cluster busy. Who asks sooner is told
// the record as it is, which is no lie: its lifetime has just begun.

import type { Clock } from '../../../observe/clock.ts';
import type { TokenRecord } from '../../api/auth.ts';
import { findToken, tokenRecord } from './snapshot.ts';
import { MAX_TOKENS } from './state.ts';
import type { ChangeRefused, Done, StatefulAuthenticator } from './stateful.ts';
import { renewedLifetimeSeconds, renewToken } from './tokens.ts';

/** The next renewal counts after half of the lifetime that the last one gave, within these bounds. */
export const SHORTEST_PAUSE_SECONDS = 5;
export const LONGEST_PAUSE_SECONDS = 60;

export type Renewals = (accessor: string, ttlSeconds: number | undefined) => Promise<Done<TokenRecord> | ChangeRefused>;

/** As `renewToken`, each token at its pace on this replica. */
export function pacedRenewals(auth: StatefulAuthenticator, clock: Pick<Clock, 'monotonic'>): Renewals {
  /** Accessor → when its next renewal counts. */
  const nextAt = new Map<string, number>();
  return async (accessor, ttlSeconds) => {
    const { snapshot } = auth;
    const token = findToken(snapshot, accessor);
    // writes nothing
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

/** Tokens are as many at most; what is left over is of tokens that were revoked. */
function forgetPast(nextAt: Map<string, number>, now: number): void {
  for (const [accessor, at] of nextAt) if (at <= now) nextAt.delete(accessor);
}
