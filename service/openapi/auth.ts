// OpenAPI of the Auth API.

import type { z } from 'zod';
import {
  createdTokenSchema,
  policyListSchema,
  policyRecordSchema,
  tokenListSchema,
  tokenRecordSchema,
} from '../../signer/api/auth.ts';
import { policyRulesSchema, policySchema, renewRequestSchema, tokenRequestSchema } from '../../signer/api/policy.ts';
import { CREDENTIALS, type Operations, responses, written } from './operation.ts';

const REFUSED = [401, 403];
const CHANGE_REFUSED = [400, ...REFUSED, 413, 503];

export const AUTH_OPERATIONS: Operations = {
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
    ...route('tokens', 'Begin the lifetime of the client token that asks anew', 200, tokenRecordSchema, CHANGE_REFUSED),
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
