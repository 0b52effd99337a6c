// The one way errors leave the server: the body of specification/signing.md#errors, with the headers its status calls
// for.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorBody, type ErrorReason, SignerError } from '../api/errors.ts';
import type { HttpRequest, RouteAccess } from './context.ts';

/** Seconds after which a client should try again; a slot is 12. */
const RETRY_AFTER_SECONDS = '1';
/** A client whose certificate was refused shows it again on its next connection, to the authorities of that moment. */
const ENDS_CONNECTION: ReadonlySet<ErrorReason> = new Set([
  'shutting_down',
  'client_certificate_expired',
  'client_certificate_untrusted',
  'client_certificate_unknown',
]);
const CHALLENGES = ['Basic realm="strongroom"', 'Bearer'];

/** A whole answer, before anything of it is sent. */
export interface Answer {
  readonly status: number;
  /** Besides those that every answer has. In lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

/** Also notes the reason for the audit line. */
export function errorAnswer(request: Pick<HttpRequest, 'id' | 'context'>, error: SignerError): Answer {
  request.context.reason = error.reason;
  const body = errorBody(error, request.id);
  const headers: Record<string, string | string[]> = {};
  if (error.status === 401) headers['www-authenticate'] = CHALLENGES;
  if (error.status === 503) headers['retry-after'] = RETRY_AFTER_SECONDS;
  // The rest of an oversized body is not read, and a signer that ends serves no further request: no reuse of the
  // connection.
  if (error.status === 413 || ENDS_CONNECTION.has(error.reason)) headers['connection'] = 'close';
  return { status: error.status, headers, contentType: 'application/json; charset=utf-8', body: JSON.stringify(body) };
}

export function refusalAnswer(
  request: Pick<HttpRequest, 'id' | 'context'>,
  reason: ErrorReason,
  hint?: string,
): Answer {
  const told = hint ?? (reason === 'denied' ? neededAccess(request.context.access) : undefined);
  return errorAnswer(request, new SignerError(reason, told === undefined ? {} : { hint: told }));
}

/** What a denied caller asks its administrator for. The route says it to everybody (OpenAPI); no policy is told. */
function neededAccess(access: RouteAccess | undefined): string | undefined {
  if (access?.kind === 'management') return 'a management token is needed';
  if (access?.kind !== 'scope' || access.scope === 'sign') return undefined;
  const scopes = [access.scope, ...(access.orScope === undefined ? [] : [access.orScope])].join(' or ');
  return `the scope ${scopes}${access.orManagement === true ? ', or a management token,' : ''} is needed`;
}

export function sendAnswer(reply: FastifyReply, { status, headers, contentType, body }: Answer): FastifyReply {
  return reply.code(status).headers(headers).type(contentType).serializer(unchanged).send(body);
}

/** With a serializer Fastify leaves the content type as it is: to a JSON text without one it adds a charset. */
function unchanged(body: string): string {
  return body;
}

export function sendError(request: FastifyRequest, reply: FastifyReply, error: SignerError): FastifyReply {
  return sendAnswer(reply, errorAnswer(request, error));
}

export function errorBody({ status, reason, message }: SignerError, id: string): ErrorBody {
  return { code: status, reason, message, request_id: id };
}

export function refuse(request: FastifyRequest, reply: FastifyReply, reason: ErrorReason, hint?: string): FastifyReply {
  return sendAnswer(reply, refusalAnswer(request, reason, hint));
}

export function sendJson(reply: FastifyReply, status: number, body: object): FastifyReply {
  return reply.code(status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

/** Fastify's own faults and everything thrown, as an error of the catalogue. Unknown faults are `internal_error`. */
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
