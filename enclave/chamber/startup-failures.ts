// What the start says when it cannot use the state table (specification/operating.md#startup-failures, 8), and what to
// do about it. It also limits the patience of a start: it retries transient faults a bounded number of times before the
// process gives up.

import { setTimeout as pause } from 'node:timers/promises';
import { SignerError } from '../api/errors.ts';
import type { AwsFault } from '../aws/errors.ts';
import { MalformedRow } from './state-rows.ts';

const MAX_TRIES = 5;
const FIRST_PAUSE_MS = 100;

const REMEDIES: Readonly<Record<AwsFault, string>> = {
  condition_failed: 'its answers contradict each other',
  conflict: 'other transactions hold its rows; start again',
  throttled: 'it throttles: give it on-demand capacity, and start again',
  not_found:
    'it does not exist: create it with `strongroom setup tables -c CONFIG`, or correct signer_state.table and the region',
  denied:
    'access is denied: give the signer credentials of a role with the policy that `strongroom setup iam --for signer` prints ' +
    '(with --phase first-boot while the table is empty; a table that has lost its rows is to be restored)',
  unreachable: 'no answer in time: check the network, the region (AWS_REGION) and the endpoint',
  failed: 'the service refuses the call',
};

const MALFORMED = 'a row is not one that this version writes: restore it from a point-in-time recovery';

export class StateTableFailure extends Error {
  readonly startupFailure = 8;

  constructor(tableName: string, problem: string, cause?: unknown) {
    super(`the state table "${tableName}" cannot be used: ${problem}`, { cause });
    this.name = 'StateTableFailure';
  }
}

/** @throws StateTableFailure when the fault stays, or is not one that passes */
export async function patiently<T>({ tableName }: { readonly tableName: string }, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof SignerError) || error.reason !== 'state_stale') throw error;
      const { fault = 'conflict', problem } = error.detail as { readonly fault?: AwsFault; readonly problem: string };
      const passing = fault === 'conflict' || fault === 'throttled' || fault === 'unreachable';
      if (!passing || tries === MAX_TRIES) {
        const remedy = error.cause instanceof MalformedRow ? MALFORMED : REMEDIES[fault];
        throw new StateTableFailure(tableName, `${remedy} (${problem})`, error);
      }
    }
    await pause(FIRST_PAUSE_MS * 2 ** (tries - 1) * (0.5 + Math.random() / 2));
  }
}
