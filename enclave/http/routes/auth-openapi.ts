// OpenAPI of the Auth API.

import { z } from 'zod';
import {
  createdTokenSchema,
  policyListSchema,
  policyRecordSchema,
  tokenListSchema,
  tokenRecordSchema,
} from '../../api/auth.ts';
import { policyRulesSchema, policySchema, renewRequestSchema, tokenRequestSchema } from '../../api/policy.ts';
import { CREDENTIALS, responses } from '../openapi.ts';

/** Statuses that any of these routes may answer. */
const REFUSED = [401, 403];
const CHANGE_REFUSED = [400, ...REFUSED, 413, 503];

export const listPolicies = route('policies', 'All policies, by name', 200, policyListSchema, REFUSED);
export const getPolicy = route('policies', 'One policy', 200, policyRecordSchema, [400, ...REFUSED, 404]);
export const createPolicy = {
  ...route('policies', 'Create a policy', 201, policyRecordSchema, [...CHANGE_REFUSED, 409]),
  body: input(policySchema),
};
export const replacePolicy = {
  ...route('policies', 'Replace the rules of a policy', 200, policyRecordSchema, [...CHANGE_REFUSED, 404]),
  body: input(policyRulesSchema),
};
export const deletePolicy = route('policies', 'Delete a policy that no live token is bound to', 204, undefined, [
  ...CHANGE_REFUSED,
  404,
  409,
]);

export const listTokens = route('tokens', 'All tokens, without their secrets', 200, tokenListSchema, REFUSED);
export const getToken = route('tokens', 'One token, without its secret', 200, tokenRecordSchema, [...REFUSED, 404]);
export const createToken = {
  ...route('tokens', 'Create a token, which is shown this once', 201, createdTokenSchema, CHANGE_REFUSED),
  body: input(tokenRequestSchema),
};
export const revokeToken = route('tokens', 'Revoke a token', 204, undefined, [...REFUSED, 404, 503]);
export const lookUpSelf = route('tokens', 'The token that asks', 200, tokenRecordSchema, REFUSED);
export const renewSelf = {
  ...route('tokens', 'Begin the lifetime of the client token that asks anew', 200, tokenRecordSchema, CHANGE_REFUSED),
  body: input(renewRequestSchema),
};

function route(
  tag: string,
  summary: string,
  status: 200 | 201 | 204,
  answer: z.ZodType | undefined,
  refusals: readonly number[],
) {
  const { 200: ok, ...refused } = responses(
    { 'application/json': answer === undefined ? {} : output(answer) },
    refusals,
  );
  const success = answer === undefined ? { description: 'Done' } : ok;
  return { summary, tags: [tag], security: CREDENTIALS, response: { [status]: success, ...refused } };
}

function input(schema: z.ZodType): object {
  return z.toJSONSchema(schema, { io: 'input' });
}

/** As it is written: a public key has one spelling by then. */
function output(schema: z.ZodType): object {
  return z.toJSONSchema(schema, { io: 'input' });
}
