// What a request that was understood ended with, as entries of the log of receipts (specification/receipts.md#log). The
// entry is there before the answer.

import { callerDigest, PUBLIC_KEY_BYTES } from '../../common/receipts/entry.ts';
import { type ErrorReason, SignerError } from '../api/errors.ts';
import type { Caller } from '../auth/authenticator.ts';
import type { ReceiptLog } from '../receipts/log.ts';
import type { RequestContext } from './context.ts';

/** @param reason why it was refused; null: it was signed */
export type RecordDecision = (context: RequestContext, publicKey: string, reason: ErrorReason | null) => void;

/** Without a token or a certificate (auth/static.ts). */
const ANONYMOUS = 'anonymous';

export function recordsDecisions(log: Pick<ReceiptLog, 'record'>): RecordDecision {
  const digests = new WeakMap<Caller, Buffer>();
  /** Of the decision that is recorded: the log copies it. */
  const key = Buffer.alloc(PUBLIC_KEY_BYTES);
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
    if (key.write(publicKey.slice(2), 'hex') !== PUBLIC_KEY_BYTES) throw new RangeError('a decision is on no key');
    log.record({ operation, reason, publicKey: key, position, signingRoot, caller: digestOf(caller) });
  };
}

export async function told<
  Outcome extends { readonly kind: 'signed' } | { readonly kind: 'refused'; reason: ErrorReason },
>(work: Promise<Outcome>, tell: (reason: ErrorReason | null) => void): Promise<Outcome> {
  try {
    const outcome = await work;
    tell(outcome.kind === 'signed' ? null : outcome.reason);
    return outcome;
  } catch (error) {
    tell(toSignerError(error).reason);
    throw error;
  }
}

export function toSignerError(error: unknown): SignerError {
  if (error instanceof SignerError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new SignerError('body_too_large');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new SignerError('malformed_body', { hint: 'the body and its headers disagree' });
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new SignerError('malformed_parameter', { hint: 'a part of the path is too long' });
    case 'ECONNRESET': // the client went away in the middle of its body
      return new SignerError('client_closed', { cause: error });
    case 'FST_ERR_BAD_URL':
      return new SignerError('malformed_parameter', { hint: 'the path is not a valid URL path' });
    default:
      return new SignerError('internal_error', { cause: error });
  }
}
