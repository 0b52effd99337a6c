// The one way errors leave the server: the body of decisions.md section 2, with the headers its status calls for.

import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorBody, type ErrorReason, SignerError } from '../api/errors.ts';

/** Seconds after which a client should try again; a slot is 12. */
const RETRY_AFTER_SECONDS = '1';
const CHALLENGES = ['Basic realm="strongroom"', 'Bearer'];

export function sendError(request: FastifyRequest, reply: FastifyReply, error: SignerError): FastifyReply {
  request.context.reason = error.reason;
  const body = errorBody(error, request.id);
  if (error.status === 401) reply.header('www-authenticate', CHALLENGES);
  if (error.status === 503) reply.header('retry-after', RETRY_AFTER_SECONDS);
  // The rest of an oversized body is not read, and a signer that ends serves no further request: no reuse of the connection.
  if (error.status === 413 || error.reason === 'shutting_down') reply.header('connection', 'close');
  return reply.code(error.status).type('application/json; charset=utf-8').send(JSON.stringify(body));
}

export function errorBody({ status, reason, message }: SignerError, id: string): ErrorBody {
  return { code: status, reason, message, request_id: id };
}

export function refuse(request: FastifyRequest, reply: FastifyReply, reason: ErrorReason, hint?: string): FastifyReply {
  return sendError(request, reply, new SignerError(reason, hint === undefined ? {} : { hint }));
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
