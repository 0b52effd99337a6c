// The policies of the Auth API (specification/authorization.md#auth-api), for management tokens. Mounted in the
// stateful mode only. A successful answer means that the change is durable. A refusal names the member of the body, or
// the object, that is the reason.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { SignerError } from '../../api/errors.ts';
import { policyNameSchema, policyRulesSchema, policySchema } from '../../api/policy.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../auth/stateful/policies.ts';
import { findPolicy, policiesOf, policyRecord } from '../../auth/stateful/snapshot.ts';
import type { StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { accepted } from '../accepted.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../caller.ts';
import { sendJson, sendNothing } from '../replies.ts';
import * as schemas from './auth-openapi.ts';

const LIST_PATH = '/api/v1/auth/policies';
const PATH = '/api/v1/auth/policies/:name';
const config = { access: { kind: 'management' } } as const;
const MISMATCH = { mismatch: 'invalid_policy' } as const;

export function mountAuthPolicies(app: FastifyInstance, auth: StatefulAuthenticator): void {
  app.get(LIST_PATH, { config, schema: schemas.listPolicies }, async (_request, reply) =>
    sendJson(reply, 200, { policies: policiesOf(auth.snapshot).map(policyRecord) }),
  );

  app.post(LIST_PATH, { config, schema: schemas.createPolicy }, async (request, reply) => {
    const policy = readJsonBody(request, policySchema, MISMATCH);
    request.context.subject = policy.name;
    const { answer } = accepted(await createPolicy(auth, callerOf(request).accessor, policy));
    return sendJson(reply, 201, answer);
  });

  app.get(PATH, { config, schema: schemas.getPolicy }, async (request, reply) => {
    const policy = findPolicy(auth.snapshot, policyName(request));
    if (policy === undefined) throw new SignerError('not_found');
    return sendJson(reply, 200, policyRecord(policy));
  });

  app.put(PATH, { config, schema: schemas.replacePolicy }, async (request, reply) => {
    const name = policyName(request);
    const { rules } = readJsonBody(request, policyRulesSchema, MISMATCH);
    const { answer } = accepted(await replacePolicy(auth, callerOf(request).accessor, { name, rules }));
    return sendJson(reply, 200, answer);
  });

  app.delete(PATH, { config, schema: schemas.deletePolicy }, async (request, reply) => {
    const name = policyName(request);
    return sendNothing(reply, accepted(await deletePolicy(auth, callerOf(request).accessor, name)));
  });
}

const NAME_HINT = 'a policy name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with none of . _ -';

/** @throws SignerError `malformed_parameter` */
function policyName(request: FastifyRequest): string {
  const name = policyNameSchema.safeParse((request.params as { name?: unknown }).name).data;
  if (name === undefined) throw new SignerError('malformed_parameter', { hint: NAME_HINT });
  request.context.subject = name;
  return name;
}
