// The one way a route refuses: it throws SignerError, and app.ts writes the answer. A thrown refusal cannot be passed
// over: the route gets the value, or does not go on. What decides elsewhere returns a refusal as a value, because it
// was expected; `accepted` is where a route takes the decision.

import { type ErrorReason, SignerError } from '../api/errors.ts';

interface Refused {
  readonly kind: 'refused';
  readonly reason: ErrorReason;
  /** For the caller. */
  readonly hint?: string;
}

type Decision = { readonly kind: string };

/** @returns the outcome, which is no refusal @throws SignerError the refusal */
export function accepted<Outcome extends Decision>(outcome: Outcome | Refused): Exclude<Outcome, { kind: 'refused' }> {
  if (isRefused(outcome)) throw refusal(outcome);
  return outcome as Exclude<Outcome, { kind: 'refused' }>;
}

export function refusal({ reason, hint }: Pick<Refused, 'reason' | 'hint'>): SignerError {
  return new SignerError(reason, hint === undefined ? {} : { hint });
}

function isRefused(outcome: Decision | Refused): outcome is Refused {
  return outcome.kind === 'refused';
}
