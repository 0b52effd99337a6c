// Who asks, once admission has let a request in, and what a decision about it leaves for the audit line.

import assert from 'node:assert/strict';
import type { Caller } from '../auth/authenticator.ts';
import type { AccessDecision } from '../auth/evaluate.ts';
import type { HttpRequest } from './context.ts';

/** Who asks, on a route that is not open. */
export function callerOf({ context }: HttpRequest): Caller {
  assert(context.caller !== undefined, 'admission lets nobody in without a caller');
  return context.caller;
}

/** Also leaves the name of the policy that denied for the audit line. */
export function isAllowed(request: HttpRequest, decision: AccessDecision): boolean {
  if (!decision.allowed && decision.why === 'denied_by_rule') request.context.deniedBy = decision.policy;
  return decision.allowed;
}
