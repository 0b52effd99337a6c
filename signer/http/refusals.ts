// Writes a refusal: the body of specification/signing.md#errors, with the headers that its status needs.

import { randomUUIDv7 } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ERROR_REASONS, type ErrorBody, type ErrorReason, SignerError } from '../api/errors.ts';
import type { HttpRequest, RouteAccess } from './context.ts';
import { type HttpAnswer, sendAnswer } from './replies.ts';

const RETRY_AFTER_SECONDS = '1';
/** A client whose certificate was refused shows it again on its next connection, to the authorities of that moment. */
const ENDS_CONNECTION: ReadonlySet<ErrorReason> = new Set([
  'shutting_down',
  'client_certificate_expired',
  'client_certificate_untrusted',
  'client_certificate_unknown',
]);
const CHALLENGES = ['Basic realm="strongroom"', 'Bearer'];

function errorAnswer(request: Pick<HttpRequest, 'id' | 'context'>, error: SignerError): HttpAnswer {
  request.context.reason = error.reason;
  const body = errorBody(error, request.id);
  const headers: Record<string, string | string[]> = {};
  if (error.status === 401) headers['www-authenticate'] = CHALLENGES;
  if (error.status === 503) headers['retry-after'] = RETRY_AFTER_SECONDS;
  // The rest of an oversized body is not read, and a signer that ends serves no further request.
  if (error.status === 413 || ENDS_CONNECTION.has(error.reason)) headers['connection'] = 'close';
  return { status: error.status, headers, contentType: 'application/json; charset=utf-8', body: JSON.stringify(body) };
}

export function refuseRequest(request: FastifyRequest, reply: FastifyReply, reason: ErrorReason): FastifyReply {
  const hint = reason === 'denied' ? neededAccess(request.context.access) : undefined;
  return sendError(request, reply, new SignerError(reason, hint === undefined ? {} : { hint }));
}

/** What a denied caller asks its administrator for. The route says it to everybody (OpenAPI); no policy is told. */
function neededAccess(access: RouteAccess | undefined): string | undefined {
  if (access?.kind === 'management') return 'a management token is needed';
  if (access?.kind !== 'scope' || access.scope === 'sign') return undefined;
  const scopes = [access.scope, ...(access.orScope === undefined ? [] : [access.orScope])].join(' or ');
  return `the scope ${scopes}${access.orManagement === true ? ', or a management token,' : ''} is needed`;
}

/**
 * A client that expects the list of keys may read an error as an empty one, and never ask again: it gets the list or
 * the end of its connection, after what was asked before on it. The challenge is answered, because a client may send
 * its credential only then (Teku).
 */
export function sendError(request: FastifyRequest, reply: FastifyReply, error: SignerError): FastifyReply {
  const answer = errorAnswer(request, error);
  const { access } = request.context;
  const listsKeys = access?.kind === 'scope' && access.listsKeys === true;
  if (!listsKeys || error.reason === 'missing_credentials') return sendAnswer(reply, answer);
  request.context.unanswered = true;
  reply.hijack();
  reply.raw.statusCode = answer.status;
  // One that waits behind another answer has no socket yet: it would end alone, and hold up what comes behind it.
  if (reply.raw.socket === null) reply.raw.once('socket', (socket) => socket.destroy());
  else reply.raw.destroy();
  return reply;
}

export function errorBody({ status, reason, message }: SignerError, id: string): ErrorBody {
  return { code: status, reason, message, request_id: id };
}

/**
 * The time in which the client reads the answer and hangs up; a client that does not is cut off, whatever else it
 * sends.
 */
const FAREWELL_MS = 1_000;

export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable || isSilent(socket)) {
    socket.destroy();
    return;
  }
  const reason: ErrorReason = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'request_timeout' : 'malformed_request';
  const { status } = ERROR_REASONS[reason];
  const text = JSON.stringify(errorBody(new SignerError(reason), randomUUIDv7()));
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
  );
  const timer = setTimeout(() => socket.destroy(), FAREWELL_MS);
  timer.unref();
  socket.once('close', () => clearTimeout(timer));
}

/** A spare connection of a client's pool has asked for nothing: an answer on it would only be a riddle. */
function isSilent(socket: Duplex): boolean {
  return 'bytesRead' in socket && socket.bytesRead === 0;
}
