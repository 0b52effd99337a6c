// What a request that was understood ended with, as entries of the log of receipts (specification/receipts.md#log). The
// entry is there before the answer.

import { callerDigest, ENTRY_KEY_BYTES } from '../../common/receipts/entry.ts';
import type { ErrorReason } from '../api/errors.ts';
import type { Caller } from '../auth/authenticator.ts';
import type { ReceiptLog } from '../receipts/log.ts';
import type { RequestContext } from './context.ts';
import { toSignerError } from './replies.ts';

/** @param reason why it was refused; null: it was signed */
export type RecordDecision = (context: RequestContext, publicKey: string, reason: ErrorReason | null) => void;

/** Without a token or a certificate (auth/static.ts). */
const ANONYMOUS = 'anonymous';

export function recordsDecisions(log: Pick<ReceiptLog, 'record'>): RecordDecision {
  const digests = new WeakMap<Caller, Buffer>();
  /** Of the decision that is recorded: the log copies it. */
  const key = Buffer.alloc(ENTRY_KEY_BYTES);
  const digestOf = (caller: Caller): Buffer => {
    const known = digests.get(caller);
    if (known !== undefined) return known;
    const { allows, denies } = caller.access;
    const policies = new Set([...allows, ...denies].map(({ policy }) => policy));
    const digest = callerDigest(caller.accessor === ANONYMOUS ? '' : caller.accessor, [...policies]);
    digests.set(caller, digest);
    return digest;
  };
  return ({ caller, operation, position = {}, signingRoot = null }, publicKey, reason) => {
    if (caller === undefined || operation === undefined) return; // admission and the parser have seen to both
    if (key.write(publicKey.slice(2), 'hex') !== ENTRY_KEY_BYTES) throw new RangeError('a decision is on no key');
    log.record({ operation, reason, publicKey: key, position, signingRoot, caller: digestOf(caller) });
  };
}

export async function reportOutcome<
  Outcome extends { readonly kind: 'signed' } | { readonly kind: 'refused'; reason: ErrorReason },
>(work: Promise<Outcome>, report: (reason: ErrorReason | null) => void): Promise<Outcome> {
  try {
    const outcome = await work;
    report(outcome.kind === 'signed' ? null : outcome.reason);
    return outcome;
  } catch (error) {
    report(toSignerError(error).reason);
    throw error;
  }
}
