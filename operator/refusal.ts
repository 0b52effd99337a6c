// Answers that say no, as failures of the command: the signer's own reason and request id, the exit code that the
// reason stands for, and what to do where something can be done.

import { z } from 'zod';
import { EXIT } from '../command-line/exit-codes.ts';
import { bounded } from '../command-line/text.ts';
import type { ErrorReason } from '../enclave/api/errors.ts';
import { type CommandFailure, ForeignAnswer, type OperatorExitCode, SignerRefusal } from './exit.ts';

const MAX_MESSAGE_CHARACTERS = 1000;

const LISTS =
  'operator auth policy list and auth token list show those that there are; a signer without signer_state has none';

/** Looser than what a signer of this version writes: a newer one may know more reasons. */
const errorBodySchema = z.object({ reason: z.string(), message: z.string(), request_id: z.string() });

const SEALED_ADVICE = '`strongroom operator status` says since when and why, `strongroom operator recover` what to do';

const ADVICE: Partial<Record<ErrorReason, string>> = {
  sealed: SEALED_ADVICE,
  auth_sealed: SEALED_ADVICE,
  missing_credentials: 'name a token with --token, SVC_OPERATOR_TOKEN or a profile',
  invalid_token: 'check that the token is whole, not expired or revoked, and of this signer',
  denied: 'policies and tokens need a management token; the other commands need their scope',
  not_found:
    'it does not exist, or the configuration of the signer leaves it out: auth and seal need signer_state, keys import, ' +
    'deactivate and delete their section of chamber.keys (docs/reference/configuration.md)',
  policy_in_use: 'revoke the tokens that are bound to it first: operator auth token list',
  already_exists: 'to replace its rules: operator auth policy update',
  starting: 'try again when the signer is ready',
};

/**
 * @param text the body as it came
 * @param subject what was asked for by its name, where that can be missing: `policy named monitoring`
 */
export function refusal(status: number, text: string, subject?: string): CommandFailure {
  const body = readErrorBody(text);
  if (body === undefined) {
    return new ForeignAnswer(
      exitCodeOf(status, undefined),
      `refused: HTTP ${status} without a reason`,
      'this is not how a signer answers: does the URL lead to a proxy, or to another service?',
    );
  }
  const { reason, message, request_id } = body;
  if (reason === 'not_found' && subject !== undefined) {
    const missing = `there is no ${subject} (request id ${request_id})`;
    return new SignerRefusal(exitCodeOf(status, reason), bounded(missing, MAX_MESSAGE_CHARACTERS), LISTS);
  }
  return new SignerRefusal(
    exitCodeOf(status, reason),
    bounded(`refused: ${reason}: ${message} (request id ${request_id})`, MAX_MESSAGE_CHARACTERS),
    Object.hasOwn(ADVICE, reason) ? ADVICE[reason as ErrorReason] : undefined,
  );
}

/** Undefined for what is no refusal of a signer. */
export function readErrorBody(text: string): z.output<typeof errorBodySchema> | undefined {
  try {
    return errorBodySchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function exitCodeOf(status: number, reason: string | undefined): OperatorExitCode {
  if ((status === 503 && reason === 'sealed') || (status === 401 && reason === 'auth_sealed')) return EXIT.sealed;
  return status === 401 || status === 403 ? EXIT.authentication : EXIT.refused;
}
