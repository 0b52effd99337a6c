// When a signing history is pruned: in the background, in small steps.

import type { Clock } from '../../../common/observe/clock.ts';
import type { Log } from '../../../common/observe/log.ts';
import { GATHERED_EPOCHS } from '../history/prune.ts';
import type { SlashingBackend } from '../types.ts';
import { PRUNED_AT_ONCE } from './pruning.ts';

/** One transaction of a few milliseconds, so that checks hardly wait. */
export const PRUNE_STEP_ENTRIES = PRUNED_AT_ONCE * (GATHERED_EPOCHS + 1);
/** A million keys make 2,604 votes old in a second: twice that is deleted. */
export const PRUNE_STEP_PAUSE_MS = 45;
/** A look that finds nothing takes at most a thousandth of the time: at once with an index, a second without. */
const PRUNE_IDLE_SHARE = 1 / 1000;
/** A slot, so that votes are deleted as evenly as they come; an epoch of 32 slots. */
export const PRUNE_IDLE_PAUSE_MS = { least: 12_000, most: 384_000 } as const;
/** A step waits while checks do, as in the burst of a slot's votes, and at most so long. */
export const PRUNE_YIELD_MS = 1_000;

interface PruningParts {
  readonly backend: Pick<SlashingBackend, 'pruneStep'>;
  /** Whether checks wait for the store, or are under way. */
  readonly isBusy: () => boolean;
  /** A store that may not be used now is left alone. */
  readonly hindrance: () => unknown;
  readonly log: Log;
  readonly clock: Clock;
}

export function startPruning({ backend, isBusy, hindrance, log, clock }: PruningParts) {
  const stopping = new AbortController();
  let wake = (): void => {};
  const done = prune();

  async function prune(): Promise<void> {
    while (!stopping.signal.aborted) {
      await pause(await step());
      for (let waited = 0; isBusy() && waited < PRUNE_YIELD_MS; waited += PRUNE_STEP_PAUSE_MS)
        await pause(PRUNE_STEP_PAUSE_MS);
    }
  }

  async function pause(milliseconds: number): Promise<void> {
    if (stopping.signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, milliseconds).unref();
    wake = resolve;
    await promise;
    clearTimeout(timer);
  }

  /** @returns how long the next waits */
  async function step(): Promise<number> {
    const { least, most } = PRUNE_IDLE_PAUSE_MS;
    if (hindrance() !== undefined) return least;
    try {
      const started = clock.monotonic();
      const deleted = await backend.pruneStep(PRUNE_STEP_ENTRIES);
      if (deleted > 0) return PRUNE_STEP_PAUSE_MS;
      return Math.min(most, Math.max(least, (clock.monotonic() - started) / PRUNE_IDLE_SHARE));
    } catch (error) {
      log.warn({ err: error }, 'pruning the slashing history failed: it is tried again later');
      return most;
    }
  }

  return {
    /** Resolves when the step under way, if any, is over; no other begins. */
    stop(): Promise<void> {
      stopping.abort();
      wake();
      return done;
    },
  };
}
