// GET /api/openapi.json of a service: generated from the routes that are mounted and the schemas that they parse with.
// The schemas describe; parsing and its refusals are the routes' own, so no route has its schema, and no request passes
// one. An image describes nothing: its routes are the same, and this document is of both.

import swagger from '@fastify/swagger';
import type { FastifyInstance, FastifySchema, RouteOptions } from 'fastify';
import { AUTH_OPERATIONS } from './auth.ts';
import { CHAMBER_OPERATIONS } from './chamber.ts';
import { KEY_OPERATIONS } from './keys.ts';
import { type Operations, responses } from './operation.ts';
import { RECEIPT_OPERATIONS } from './receipts.ts';
import { SIGNING_OPERATIONS } from './signing.ts';

const PATH = '/api/openapi.json';

export const OPERATIONS: Operations = {
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
  const operation = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : undefined;
  if (operation === undefined) throw new Error(`${name} has no description (service/openapi/)`);
  return operation;
}
