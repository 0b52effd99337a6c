// Answers that say no, as failures of the command: the signer's own reason and request id, the exit code that the
// reason stands for, and what to do where something can be done.

import { z } from 'zod';
import { EXIT } from '../common/command-line/exit-codes.ts';
import { bounded } from '../common/command-line/text.ts';
import { parseJson } from '../common/formats/parse-json.ts';
import type { ErrorReason } from '../signer/api/errors.ts';
import { type CommandFailure, ForeignAnswer, type OperatorExitCode, SignerRefusal } from './exit.ts';

const MAX_MESSAGE_CHARACTERS = 1000;

const LISTS =
  'operator auth policy list and auth token list show those that there are; a signer without signer_state has none';

/** Looser than what a signer of this version writes: a newer one may know more reasons. */
const errorBodySchema = z.object({ reason: z.string(), message: z.string(), request_id: z.string() });
type ErrorBody = z.output<typeof errorBodySchema>;

const SEALED_ADVICE = '`strongroom operator status` says since when and why, `strongroom operator recover` what to do';

/** For a signer that says itself that it is sealed, or that a check is down. */
export const RECOVER_ADVICE = '`strongroom operator recover` says what recovery takes';

const ADVICE: Partial<Record<ErrorReason, string>> = {
  sealed: SEALED_ADVICE,
  auth_sealed: SEALED_ADVICE,
  missing_credentials: 'name a token with --token, SVC_OPERATOR_TOKEN or a profile',
  invalid_token: 'check that the token is whole, not expired or revoked, and of this signer',
  policy_in_use: 'revoke the tokens that are bound to it first: operator auth token list',
  already_exists: 'to replace its rules: operator auth policy update',
  starting: 'try again when the signer is ready',
};

export interface AskedRoute {
  readonly path: string;
  /** What the path names, where that can be missing: `policy named monitoring`. */
  readonly subject?: string;
  /** The option of the signer without which it has no such path: `signer_state.backend`. */
  readonly needs?: string;
}

export function signerRefusal(status: number, text: string, asked: AskedRoute): CommandFailure {
  const body = readErrorBody(text);
  if (body === undefined) {
    return new ForeignAnswer(
      exitCodeOf(status, undefined),
      `refused: HTTP ${status} without a reason`,
      'this is not how a signer answers: does the URL lead to a proxy, or to another service?',
    );
  }
  const { reason, message, request_id } = body;
  const isMissing = reason === 'not_found' && asked.subject !== undefined;
  const said = isMissing ? `there is no ${asked.subject}` : `refused: ${reason}: ${message}`;
  return new SignerRefusal(
    reason,
    exitCodeOf(status, reason),
    bounded(`${said} (request id ${request_id})`, MAX_MESSAGE_CHARACTERS),
    adviceOn(body, asked),
  );
}

function adviceOn({ reason, message }: ErrorBody, { path, subject, needs }: AskedRoute): string | undefined {
  if (reason === 'not_found') return subject === undefined ? adviceOnPath(needs) : LISTS;
  if (reason === 'denied') return adviceOnRights(path, message);
  if (reason === 'invalid_token_request' && message.includes('there is no policy')) {
    return 'see them: strongroom operator auth policy list';
  }
  return Object.hasOwn(ADVICE, reason) ? ADVICE[reason as ErrorReason] : undefined;
}

function adviceOnPath(needs: string | undefined): string {
  return needs === undefined
    ? 'does the URL lead to the signer itself, and is it of the same version?'
    : `it needs ${needs} in the configuration of the signer: docs/reference/configuration.md`;
}

/** The signer names the scope where the caller lacks it, and not where the caller lacks one of the keys. */
function adviceOnRights(path: string, message: string): string {
  if (path.startsWith('/api/v1/auth/')) return 'policies and tokens need a management token: name one with --token';
  return message.includes('the scope ')
    ? 'give its policy this scope: docs/reference/authorization.md'
    : "give its policy the command's scope, for every key that is asked for: docs/reference/authorization.md";
}

export function readErrorBody(text: string): ErrorBody | undefined {
  return errorBodySchema.safeParse(parseJson(text)).data;
}

function exitCodeOf(status: number, reason: string | undefined): OperatorExitCode {
  if ((status === 503 && reason === 'sealed') || (status === 401 && reason === 'auth_sealed')) return EXIT.sealed;
  return status === 401 || status === 403 ? EXIT.authentication : EXIT.refused;
}
