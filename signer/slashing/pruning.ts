// When a signing history is pruned: in the background, in small steps.

import type { Log } from '../../common/observe/log.ts';
import { GATHERED_EPOCHS } from './history/prune.ts';
import { PRUNED_AT_ONCE } from './operations/pruning-steps.ts';
import type { SlashingBackend } from './types.ts';

/** One transaction of a few milliseconds, so that checks hardly wait. */
export const PRUNE_STEP_ENTRIES = PRUNED_AT_ONCE * (GATHERED_EPOCHS + 1);
/** A million keys make 2,604 votes old in a second: twice that is deleted. */
export const PRUNE_STEP_PAUSE_MS = 45;
/** An epoch of 32 slots of 12 seconds. */
export const PRUNE_IDLE_PAUSE_MS = 384_000;

export interface Pruning {
  /** Resolves when the step under way, if any, is over; no other begins. */
  stop(): Promise<void>;
}

/** A step that fails is logged, and tried again after the long pause. */
export function startPruning(
  options: { readonly onPruned?: (entries: number) => void },
  { backend, log }: { backend: Pick<SlashingBackend, 'pruneStep'>; log: Log },
): Pruning {
  const stopping = new AbortController();
  const done = prune();

  async function prune(): Promise<void> {
    while (!stopping.signal.aborted) {
      const deleted = await step();
      await pause(deleted > 0 ? PRUNE_STEP_PAUSE_MS : PRUNE_IDLE_PAUSE_MS, stopping.signal);
    }
  }

  async function step(): Promise<number> {
    try {
      const deleted = await backend.pruneStep(PRUNE_STEP_ENTRIES);
      if (deleted > 0) options.onPruned?.(deleted);
      return deleted;
    } catch (error) {
      log.warn({ err: error }, 'pruning the slashing history failed: it is tried again later');
      return 0;
    }
  }

  return {
    stop() {
      stopping.abort();
      return done;
    },
  };
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds).unref();
    signal.addEventListener('abort', end, { once: true });
  });
}
