// GET /api/openapi.json: generated from the mounted routes and the schemas they are parsed with. The schemas describe;
// parsing and its refusals are the routes' own, so Fastify neither validates nor serialises with them.

import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { chamberStatusSchema, sealAnswerSchema, sealRequestSchema } from '../api/chamber.ts';
import { ERROR_REASONS, type ErrorReason } from '../api/errors.ts';
import { healthSchema } from '../api/health.ts';
import { inputJsonSchema } from '../api/primitives.ts';
import { signBatchJsonSchema, signRequestJsonSchema } from '../api/sign-request-openapi.ts';

const ERROR_BODY = {
  type: 'object',
  required: ['code', 'reason', 'message', 'request_id'],
  properties: {
    code: { type: 'integer', description: 'The HTTP status' },
    reason: { type: 'string', description: 'Stable reason', enum: Object.keys(ERROR_REASONS) },
    message: { type: 'string' },
    request_id: { type: 'string' },
  },
} as const;

const PUBLIC_KEY = { type: 'string', pattern: '^(0[xX])?[0-9a-fA-F]{96}$' } as const;
const SIGNATURE = { type: 'string', pattern: '^0x[0-9a-f]{192}$', description: 'BLS signature, 96 bytes' } as const;

const KEY_ERROR = {
  type: 'object',
  required: ['code', 'reason', 'message'],
  properties: {
    code: { type: 'integer', description: 'What the route of one key would have answered: 403, 404, 412 or 503' },
    reason: ERROR_BODY.properties.reason,
    message: { type: 'string' },
  },
} as const;

const KEY_RESULT = {
  oneOf: [
    {
      type: 'object',
      required: ['identifier', 'signature'],
      properties: { identifier: PUBLIC_KEY, signature: SIGNATURE },
    },
    { type: 'object', required: ['identifier', 'error'], properties: { identifier: PUBLIC_KEY, error: KEY_ERROR } },
  ],
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

export const upcheckRouteSchema = {
  summary: 'Liveness: OK whatever the load or the state',
  tags: ['health'],
  response: responses({ 'text/plain': { type: 'string', enum: ['OK'] } }, []),
};

const HEALTH_BODY = inputJsonSchema(healthSchema);

export const healthRouteSchema = {
  summary: 'Readiness: whether the signer can safely sign',
  tags: ['health'],
  response: {
    200: { description: 'UP', content: { 'application/json': { schema: HEALTH_BODY } } },
    503: { description: 'DOWN', content: { 'application/json': { schema: HEALTH_BODY } } },
  },
};

export const publicKeysRouteSchema = {
  summary: 'The public keys that the caller can sign with, ascending',
  tags: ['signing'],
  security: CREDENTIALS,
  response: responses({ 'application/json': { type: 'array', items: PUBLIC_KEY } }, [401, 403, 503]),
};

export const signRouteSchema = {
  summary: 'Sign a validator message',
  tags: ['signing'],
  security: CREDENTIALS,
  params: { type: 'object', required: ['identifier'], properties: { identifier: PUBLIC_KEY } },
  body: signRequestJsonSchema(),
  response: responses(
    {
      'application/json': { type: 'object', required: ['signature'], properties: { signature: SIGNATURE } },
      'text/plain': SIGNATURE,
    },
    [400, 401, 403, 404, 412, 413, 503],
  ),
};

export const signBatchRouteSchema = {
  summary: 'Sign one validator message with many keys',
  description:
    'A result for each key, in the order of the identifiers. Remote Signing API, pull request 29: a draft, and versioned with it.',
  tags: ['signing'],
  security: CREDENTIALS,
  body: signBatchJsonSchema(),
  response: responses({ 'application/json': { type: 'array', items: KEY_RESULT } }, [400, 401, 403, 413, 503]),
};

export const chamberStatusRouteSchema = {
  summary: 'The state of this replica, its custody keys and what it depends on',
  tags: ['chamber'],
  security: CREDENTIALS,
  response: responses({ 'application/json': z.toJSONSchema(chamberStatusSchema) }, [401, 403]),
};

export const chamberSealRouteSchema = {
  summary: 'Break-glass: seal every replica, until the latch is deleted and each is restarted',
  tags: ['chamber'],
  security: CREDENTIALS,
  body: z.toJSONSchema(sealRequestSchema, { io: 'input' }),
  response: responses({ 'application/json': z.toJSONSchema(sealAnswerSchema) }, [400, 401, 403, 413, 503]),
};

const documentRouteSchema = {
  summary: 'This document',
  tags: ['health'],
  response: responses({ 'application/json': { type: 'object' } }, []),
};

/** Before any other route: the generator sees only the routes mounted after it. */
export async function mountOpenApi(app: FastifyInstance): Promise<void> {
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (body) => JSON.stringify(body));
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'strongroom', version: '1', description: 'Remote signer for Ethereum validator keys' },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer' },
          basic: { type: 'http', scheme: 'basic', description: 'The user name is ignored, the password is the token' },
        },
      },
    },
  });
  const config = { access: { kind: 'open' } } as const;
  let document: Buffer | undefined; // made once: it is large, and anybody may ask for it
  app.get('/api/openapi.json', { config, schema: documentRouteSchema }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type('application/json').send(document);
  });
}
