// The policies of the Auth API (specification/authorization.md#auth-api), for management tokens, in the stateful mode.
// A successful answer means that the change is durable.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { SignerError } from '../../api/errors.ts';
import { policyNameSchema, policyRulesSchema, policySchema } from '../../api/policy.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../auth/stateful/policies.ts';
import { findPolicy, policiesOf, policyRecord } from '../../auth/stateful/snapshot.ts';
import type { StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../context.ts';
import { accepted, sendJson, sendNothing } from '../replies.ts';

const LIST_PATH = '/api/v1/auth/policies';
const PATH = '/api/v1/auth/policies/:name';
const config = { access: { kind: 'management' } } as const;
const MISMATCH = { mismatch: 'invalid_policy' } as const;

export function mountAuthPolicies(app: FastifyInstance, auth: StatefulAuthenticator): void {
  app.get(LIST_PATH, { config }, async (_request, reply) =>
    sendJson(reply, 200, { policies: policiesOf(auth.snapshot).map(policyRecord) }),
  );

  app.post(LIST_PATH, { config }, async (request, reply) => {
    const policy = readJsonBody(request, policySchema, MISMATCH);
    request.context.subject = policy.name;
    const { answer } = accepted(await createPolicy(auth, callerOf(request).accessor, policy));
    return sendJson(reply, 201, answer);
  });

  app.get(PATH, { config }, async (request, reply) => {
    const policy = findPolicy(auth.snapshot, policyName(request));
    if (policy === undefined) throw new SignerError('not_found');
    return sendJson(reply, 200, policyRecord(policy));
  });

  app.put(PATH, { config }, async (request, reply) => {
    const name = policyName(request);
    const { rules } = readJsonBody(request, policyRulesSchema, MISMATCH);
    const { answer } = accepted(await replacePolicy(auth, callerOf(request).accessor, { name, rules }));
    return sendJson(reply, 200, answer);
  });

  app.delete(PATH, { config }, async (request, reply) => {
    const name = policyName(request);
    return sendNothing(reply, accepted(await deletePolicy(auth, callerOf(request).accessor, name)));
  });
}

const NAME_HINT = 'a policy name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with none of . _ -';

function policyName(request: FastifyRequest): string {
  const name = policyNameSchema.safeParse((request.params as { name?: unknown }).name).data;
  if (name === undefined) throw new SignerError('malformed_parameter', { hint: NAME_HINT });
  request.context.subject = name;
  return name;
}
