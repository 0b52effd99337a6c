// The answers of routes: a success is sent, a refusal is thrown (`accepted`).

import type { FastifyReply } from 'fastify';
import { encodeHex } from '../../common/formats/hex.ts';
import { SignerError } from '../api/errors.ts';
import type { Refused } from '../sign/dependencies.ts';

export type Success = 200 | 201 | 202;

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

export interface SuccessAnswer extends HttpAnswer {
  readonly status: Success;
}

export function sendAnswer(reply: FastifyReply, { status, headers, contentType, body }: HttpAnswer): FastifyReply {
  return reply.code(status).headers(headers).type(contentType).serializer(unchanged).send(body);
}

/** With a serializer Fastify leaves the content type as it is: to a JSON text without one it adds a charset. */
function unchanged(body: string): string {
  return body;
}

export function sendJson(reply: FastifyReply, status: Success, body: object): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

/** 204. @param _done proof that the change was made: a caller that ignores a refusal has none */
export function sendNothing(reply: FastifyReply, _done: { readonly kind: 'done' }): FastifyReply {
  return reply.code(204).send();
}

type Kinded = { readonly kind: string };

/** @returns the outcome, which is no refusal @throws SignerError the refusal */
export function accepted<Outcome extends Kinded>(outcome: Outcome | Refused): Exclude<Outcome, { kind: 'refused' }> {
  if (isRefused(outcome)) throw refusalError(outcome);
  return outcome as Exclude<Outcome, { kind: 'refused' }>;
}

export function refusalError({ reason, hint }: Pick<Refused, 'reason' | 'hint'>): SignerError {
  return new SignerError(reason, hint === undefined ? {} : { hint });
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

function isRefused(outcome: Kinded | Refused): outcome is Refused {
  return outcome.kind === 'refused';
}

// JSON or bare hex, by the request's Accept (specification/signing.md#answers): exact, no quality values.

type AnswerFormat = 'json' | 'text';

interface SignatureAnswer {
  readonly contentType: 'application/json' | 'text/plain; charset=utf-8';
  readonly body: string;
}

export function answerFormat(accept: string | undefined): AnswerFormat {
  const types = accept?.toLowerCase() ?? '';
  return types.includes('application/json') || types.includes('*/*') ? 'json' : 'text';
}

export function signatureAnswer(signature: Uint8Array, format: AnswerFormat): SignatureAnswer {
  const hex = encodeHex(signature);
  return format === 'json'
    ? { contentType: 'application/json', body: `{"signature":"${hex}"}` }
    : { contentType: 'text/plain; charset=utf-8', body: hex };
}
