// The one way in which a route refuses: it throws SignerError, and app.ts writes the answer. Nobody can ignore a thrown
// refusal: the route gets the value, or does not continue. Code outside the routes expects refusals, so it returns them
// as values. A route passes such a value to `accepted`.

import { type ErrorReason, SignerError } from '../api/errors.ts';

interface Refused {
  readonly kind: 'refused';
  readonly reason: ErrorReason;
  /** For the caller. */
  readonly hint?: string;
}

type Kinded = { readonly kind: string };

/** @returns the outcome, which is no refusal @throws SignerError the refusal */
export function accepted<Outcome extends Kinded>(outcome: Outcome | Refused): Exclude<Outcome, { kind: 'refused' }> {
  if (isRefused(outcome)) throw refusal(outcome);
  return outcome as Exclude<Outcome, { kind: 'refused' }>;
}

export function refusal({ reason, hint }: Pick<Refused, 'reason' | 'hint'>): SignerError {
  return new SignerError(reason, hint === undefined ? {} : { hint });
}

function isRefused(outcome: Kinded | Refused): outcome is Refused {
  return outcome.kind === 'refused';
}
