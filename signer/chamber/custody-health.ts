// The custody keys are asked at most every few seconds, and never twice at once, however many callers want to know.

import type { KeyAttempt } from '../../ceremony/custody-keys.ts';
import type { CustodyKey } from '../../ceremony/definition.ts';
import type { Clock } from '../../common/observe/clock.ts';

export const CUSTODY_HEALTH_SECONDS = 5;

export interface CustodyKeyHealth {
  readonly arns: readonly string[];
  readonly status: string;
}

interface CustodyHealthParts {
  reachable(
    arns: readonly string[],
  ): Promise<{ readonly ok: true } | { readonly ok: false; readonly attempts: readonly KeyAttempt[] }>;
  readonly clock: Clock;
}

export function custodyHealth(
  keys: readonly CustodyKey[],
  parts: CustodyHealthParts,
): () => Promise<readonly CustodyKeyHealth[]> {
  let asked: { readonly at: number; readonly answer: Promise<readonly CustodyKeyHealth[]> } | undefined;
  let asking = false;
  const ask = (): Promise<readonly CustodyKeyHealth[]> =>
    Promise.all(
      keys.map(async ({ arns }) => {
        const answer = await parts.reachable(arns);
        return { arns, status: answer.ok ? 'reachable' : (answer.attempts.at(-1)?.fault ?? 'failed') };
      }),
    );
  return () => {
    const now = parts.clock.monotonic();
    // A round that takes longer than its result counts is still the round that all callers wait for.
    if (asked === undefined || (!asking && now - asked.at > CUSTODY_HEALTH_SECONDS * 1000)) {
      asking = true;
      asked = {
        at: now,
        answer: ask().finally(() => {
          asking = false;
        }),
      };
    }
    return asked.answer;
  };
}
