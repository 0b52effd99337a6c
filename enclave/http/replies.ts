// Sends answers. A route only says that it has succeeded; it throws its refusals (accepted.ts).

import type { FastifyReply } from 'fastify';

/** The statuses of a route's own answers. */
export type Success = 200 | 201 | 202;

/** A whole answer, before anything of it is sent. */
export interface Answer {
  readonly status: number;
  /** Besides those that every answer has. In lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly contentType: string;
  readonly body: string | Uint8Array;
}

export interface SuccessAnswer extends Answer {
  readonly status: Success;
}

export function sendAnswer(reply: FastifyReply, { status, headers, contentType, body }: Answer): FastifyReply {
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
