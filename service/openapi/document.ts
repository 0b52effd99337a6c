// GET /api/openapi.json of a service: generated from the routes that are mounted and the schemas that they parse with.
// The schemas describe; parsing and its refusals are the routes' own, so no route has its schema, and no request passes
// one. An image describes nothing: its routes are the same, and this document is of both.

import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import type { z } from 'zod';
import {
  createdTokenSchema,
  policyListSchema,
  policyRecordSchema,
  tokenListSchema,
  tokenRecordSchema,
} from '../../signer/api/auth.ts';
import { policyRulesSchema, policySchema, renewRequestSchema, tokenRequestSchema } from '../../signer/api/policy.ts';
import { CHAMBER_OPERATIONS, KEY_OPERATIONS } from './keys.ts';
import { CREDENTIALS, type Operations, responses, written } from './operation.ts';
import { SIGNING_OPERATIONS } from './signing.ts';

// OpenAPI of the logs of receipts.

const RECEIPTS = '/api/v1/receipts';
const HEX_BOOT = { type: 'string', pattern: '^[0-9a-f]{32}$' } as const;
const CHECKPOINT = { type: 'string', description: 'A C2SP checkpoint' } as const;
const common = { tags: ['receipts'], security: CREDENTIALS } as const;

const RECEIPT_OPERATIONS: Operations = {
  [`GET ${RECEIPTS}/head`]: {
    ...common,
    summary: 'The latest head of the log of this start that is kept',
    response: responses({ 'text/plain': CHECKPOINT }, [401, 403, 503]),
  },
  [`GET ${RECEIPTS}/boots`]: {
    ...common,
    summary: 'The starts whose logs the storage holds, those with the latest heads first',
    response: responses(
      {
        'application/json': {
          type: 'object',
          required: ['boot', 'boots'],
          properties: { boot: { ...HEX_BOOT, description: 'This start' }, boots: { type: 'array', items: HEX_BOOT } },
        },
      },
      [401, 403, 503],
    ),
  },
  [`GET ${RECEIPTS}/tiles/:boot/*`]: {
    ...common,
    summary: 'A file of a log: identity, checkpoint, heads/N, tile/L/N, tile/entries/N (C2SP tlog-tiles)',
    response: responses(
      { 'application/octet-stream': { type: 'string', format: 'binary' } },
      [400, 401, 403, 404, 503],
    ),
  },
};

// OpenAPI of the Auth API.

const REFUSED = [401, 403];
const CHANGE_REFUSED = [400, ...REFUSED, 413, 503];

const AUTH_OPERATIONS: Operations = {
  'GET /api/v1/auth/policies': route('policies', 'All policies, by name', 200, policyListSchema, REFUSED),
  'POST /api/v1/auth/policies': {
    ...route('policies', 'Create a policy', 201, policyRecordSchema, [...CHANGE_REFUSED, 409]),
    body: written(policySchema),
  },
  'GET /api/v1/auth/policies/:name': route('policies', 'One policy', 200, policyRecordSchema, [400, ...REFUSED, 404]),
  'PUT /api/v1/auth/policies/:name': {
    ...route('policies', 'Replace the rules of a policy', 200, policyRecordSchema, [...CHANGE_REFUSED, 404]),
    body: written(policyRulesSchema),
  },
  'DELETE /api/v1/auth/policies/:name': route(
    'policies',
    'Delete a policy that no live token is bound to',
    204,
    undefined,
    [...CHANGE_REFUSED, 404, 409],
  ),
  'GET /api/v1/auth/tokens': route('tokens', 'All tokens, without their secrets', 200, tokenListSchema, REFUSED),
  'POST /api/v1/auth/tokens': {
    ...route('tokens', 'Create a token, which is shown this once', 201, createdTokenSchema, CHANGE_REFUSED),
    body: written(tokenRequestSchema),
  },
  'GET /api/v1/auth/tokens/:accessor': route('tokens', 'One token, without its secret', 200, tokenRecordSchema, [
    400,
    ...REFUSED,
    404,
  ]),
  'DELETE /api/v1/auth/tokens/:accessor': route('tokens', 'Revoke a token', 204, undefined, [
    400,
    ...REFUSED,
    404,
    503,
  ]),
  'GET /api/v1/auth/tokens/lookup-self': route('tokens', 'The token that asks', 200, tokenRecordSchema, REFUSED),
  'POST /api/v1/auth/tokens/renew-self': {
    ...route('tokens', 'Begin the lifetime of the token that asks again', 200, tokenRecordSchema, CHANGE_REFUSED),
    body: written(renewRequestSchema),
  },
};

function route(
  tag: string,
  summary: string,
  status: 200 | 201 | 204,
  answer: z.ZodType | undefined,
  refusals: readonly number[],
) {
  const { 200: ok, ...refused } = responses(
    { 'application/json': answer === undefined ? {} : written(answer) },
    refusals,
  );
  // `null`: an answer without a body, and so without a type of it.
  const success = answer === undefined ? { description: 'Done', type: 'null' } : ok;
  return { summary, tags: [tag], security: CREDENTIALS, response: { [status]: success, ...refused } };
}

const PATH = '/api/openapi.json';

export const OPENAPI_OPERATIONS: Operations = {
  ...SIGNING_OPERATIONS,
  ...CHAMBER_OPERATIONS,
  ...KEY_OPERATIONS,
  ...RECEIPT_OPERATIONS,
  ...AUTH_OPERATIONS,
  [`GET ${PATH}`]: {
    summary: 'This document',
    tags: ['health'],
    response: responses({ 'application/json': { type: 'object' } }, []),
  },
};

const DESCRIPTION =
  'Remote signer for Ethereum validator keys. On every route, input that is no HTTP request, such as a header with a ' +
  'control character, is 400 `malformed_request`, and a path that is no valid URL path is 400 `malformed_parameter`; ' +
  'the connection of the first is closed.';

/** Before any other route: it sees those that are mounted after it. @throws Error of a route without a description */
export async function describeRoutes(app: FastifyInstance): Promise<void> {
  app.addHook('onRoute', (route) => {
    if (route.method !== 'OPTIONS') operationOf(route);
  });
  await app.register(swagger, {
    transform: ({ schema, url, route }) => ({ schema: route.method === 'OPTIONS' ? schema : operationOf(route), url }),
    openapi: {
      openapi: '3.1.0',
      info: { title: 'strongroom', version: '1', description: DESCRIPTION },
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
  app.get(PATH, { config }, async (_request, reply) => {
    document ??= Buffer.from(JSON.stringify(app.swagger()));
    return reply.type('application/json').send(document);
  });
}

/** @throws Error of a route without a description */
function operationOf({ method, url }: Pick<RouteOptions, 'method' | 'url'>): FastifySchema {
  const name = `${method === 'HEAD' ? 'GET' : String(method)} ${url}`;
  const operation = Object.hasOwn(OPENAPI_OPERATIONS, name) ? OPENAPI_OPERATIONS[name] : undefined;
  if (operation === undefined) throw new Error(`${name} has no description (service/openapi/)`);
  return operation;
}
