// Health decides nothing: a store that is down is still asked.

import type { Clock } from '../../common/observe/clock.ts';
import type { Log } from '../../common/observe/log.ts';
import { unlessAborted } from './operations/store.ts';
import type { RestrainedStore } from './restraints.ts';
import type { SlashableMessage, SlashingVerdict } from './types.ts';

export interface SlashingHealth {
  readonly status: 'up' | 'down' | 'unopened';
  /** Wall time of the answer or failure this comes from, milliseconds since the Unix epoch. */
  readonly since: number;
}

export function storeHealth(store: RestrainedStore, isUnopened: boolean, { clock, log }: { clock: Clock; log: Log }) {
  /** What the first commit that failed was of, until one succeeds. Later ones may be repeats, which need no commit. */
  let failed: readonly SlashableMessage[] = [];
  let failures = 0;
  let now: SlashingHealth = { status: isUnopened ? 'unopened' : 'up', since: clock.now() };

  function heard(status: 'up' | 'down', cause?: unknown): void {
    if (status !== now.status) {
      if (status === 'up') log.info({ backend: store.name }, 'slashing protection is available again');
      else log.error({ backend: store.name, err: cause }, 'slashing protection is unavailable');
    }
    now = { status, since: clock.now() };
  }

  return {
    now: () => now,
    failedCommit(messages: readonly SlashableMessage[], cause: unknown): void {
      failures += 1;
      if (failed.length === 0) failed = messages;
      heard('down', cause);
    },
    /** A store that cannot write still answers what it need not record. */
    answered(verdicts: readonly SlashingVerdict[]): void {
      if (failed.length > 0 && !verdicts.some((verdict) => verdict.kind === 'safe' && !verdict.repeat)) return;
      failed = [];
      heard('up');
    },
    async ask(signal: AbortSignal, commitAgain: (messages: typeof failed) => Promise<void>): Promise<SlashingHealth> {
      if (isUnopened) return now;
      const [asked, before] = [failed, failures];
      try {
        await unlessAborted(signal, () => (asked.length > 0 ? commitAgain(asked) : store.checkHealth(signal)));
        if (failed !== asked || failures !== before) return now; // another commit has succeeded or failed
        failed = [];
        heard('up');
      } catch (error) {
        heard('down', error);
      }
      return now;
    },
  };
}
