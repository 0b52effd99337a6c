// How a route is described: its answers by content type, and the reasons of each status that refuses.

import type { FastifySchema } from 'fastify';
import { z } from 'zod';
import { ERROR_REASONS, type ErrorReason } from '../../signer/api/errors.ts';

export type Operations = Readonly<Record<string, FastifySchema>>;

export const ERROR_BODY = {
  type: 'object',
  required: ['code', 'reason', 'message', 'request_id'],
  properties: {
    code: { type: 'integer', description: 'The HTTP status' },
    reason: { type: 'string', description: 'Stable reason', enum: Object.keys(ERROR_REASONS) },
    message: { type: 'string' },
    request_id: { type: 'string' },
  },
} as const;

/** 200 by content type, and each error status with the reasons that lead to it. */
export function responses(ok: Record<string, object>, statuses: readonly number[]): Record<number, object> {
  const errors = statuses.map((status) => [
    status,
    { description: reasonsOf(status).join(', '), content: { 'application/json': { schema: ERROR_BODY } } },
  ]);
  const content = Object.fromEntries(Object.entries(ok).map(([type, schema]) => [type, { schema }]));
  return { 200: { description: 'OK', content }, ...Object.fromEntries(errors) };
}

function reasonsOf(status: number): ErrorReason[] {
  const reasons = Object.keys(ERROR_REASONS) as ErrorReason[];
  return reasons.filter((reason) => ERROR_REASONS[reason].status === status);
}

export const CREDENTIALS = [{ bearer: [] }, { basic: [] }];

/** As it is written: a public key has one spelling by then. */
export function written(schema: z.ZodType): object {
  return z.toJSONSchema(schema, { io: 'input' });
}
