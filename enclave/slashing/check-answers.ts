// Turns the answer of the store into the result of a check: safe, refused, or an error. It calls a message safe only
// when the store says so plainly. A failed batch, a missing verdict and a right that was lost meanwhile are errors.

import type { Log } from '../../observe/log.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { WaitingCheck } from './check-queue.ts';
import type { KeyFault, SlashingRefusal, Verdict } from './types.ts';

export interface AnswerHooks {
  /**
   * Why nothing may be signed over this store now; undefined when it may. Asked before a check reaches the store and
   * again before its answer is released: a process that was stopped in between may have lost the right meanwhile.
   */
  readonly hindrance?: () => ErrorReason | undefined;
  /** A store holds less than this process knows to be recorded; called once for each such answer. */
  readonly onRollback?: () => void;
  readonly onRefusal?: (reason: SlashingRefusal | KeyFault) => void;
}

/** @param failure why the batch of the check failed; undefined when it was committed */
export function answerCheck(
  check: WaitingCheck,
  { failure, verdict }: { readonly failure: unknown; readonly verdict: Verdict | undefined },
  { hooks, log }: { readonly hooks: AnswerHooks; readonly log: Log },
): void {
  if (failure !== undefined || verdict === undefined) {
    check.reject(
      failure instanceof SignerError ? failure : new SignerError('slashing_unavailable', { cause: failure }),
    );
    return;
  }
  const hindrance = verdict.kind === 'safe' ? hooks.hindrance?.() : undefined;
  if (hindrance !== undefined) {
    check.reject(new SignerError(hindrance));
    return;
  }
  if (verdict.kind === 'safe') {
    check.resolve({ kind: 'safe', repeat: verdict.repeat });
    return;
  }
  const { reason } = verdict;
  callHook(() => hooks.onRefusal?.(reason), log);
  if (verdict.kind === 'refused') {
    check.resolve({ kind: 'refused', reason: verdict.reason });
    return;
  }
  log.error({ public_key: check.message.publicKey, reason: verdict.reason }, 'slashing protection fails for a key');
  if (reason === 'slashing_rollback') callHook(() => hooks.onRollback?.(), log);
  check.reject(new SignerError(verdict.reason));
}

/** A counter that fails holds up no answer. */
export function callHook(hook: () => void, log: Log): void {
  try {
    hook();
  } catch (error) {
    log.error({ err: error }, 'a hook of slashing protection failed');
  }
}
