// Without a state table signers renew the incarnation of a store that they share, as the binding of a fleet does
// (chamber/store-binding.ts): at their start and every few seconds. A store without the number that this process saw
// last is an earlier state of itself, put back under it. Younger copies than the last number are not told apart here.

import { nextIncarnation, readIncarnations } from '../incarnation.ts';
import type { BareStore } from '../restraints.ts';
import type { Doubt } from '../types.ts';

/** Between looks: a signer has seen a number that is younger than a copy after two of them at most. */
export const RENEWAL_MS = 5_000;

export function renewIncarnations(
  store: Pick<BareStore, 'name' | 'identity' | 'incarnate'>,
  settle: (doubt: Doubt) => Promise<void>,
): () => Promise<void> {
  let seen: string | undefined;

  return async () => {
    // A file is one process's alone, and says by itself what it was when it was closed.
    if (store.name !== 'postgres' && store.name !== 'dynamodb') return;
    const { incarnation } = await store.identity();
    const { held } = readIncarnations(incarnation);
    const before = seen;
    seen = held[0];
    if (before !== undefined && !held.includes(before)) await settle({ cause: 'incarnation' });
    // Another signer has renewed it since the last look: so many numbers suffice.
    else if (before !== undefined && before !== seen) return;
    const next = nextIncarnation(incarnation, null);
    if (await store.incarnate(incarnation, next)) [seen] = readIncarnations(next).held;
  };
}
