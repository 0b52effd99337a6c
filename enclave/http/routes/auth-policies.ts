// The policies of the Auth API (specification/authorization.md#auth-api), for management tokens. Mounted in the
// stateful mode only. What is answered with success is durable; what is refused says which member of the body, or which
// object, stands in the way.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { PolicyRecord } from '../../api/auth.ts';
import { policyNameSchema, policyRulesSchema, policySchema } from '../../api/policy.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../auth/stateful/policies.ts';
import { findPolicy, policiesOf, policyRecord } from '../../auth/stateful/snapshot.ts';
import type { ChangeRefused, Done, StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { actorOf } from '../admission.ts';
import { readJsonBody } from '../bodies/json.ts';
import { refuse, sendJson } from '../replies.ts';
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
    const body = readJsonBody(request, policySchema, MISMATCH);
    if (body.kind === 'refused') return refuse(request, reply, body.reason, body.hint);
    request.context.subject = body.value.name;
    return answer(request, reply, 201, await createPolicy(auth, actorOf(request), body.value));
  });

  app.get(PATH, { config, schema: schemas.getPolicy }, async (request, reply) => {
    const name = policyName(request);
    if (name === undefined) return refuse(request, reply, 'malformed_parameter', NAME_HINT);
    const policy = findPolicy(auth.snapshot, name);
    return policy === undefined ? refuse(request, reply, 'not_found') : sendJson(reply, 200, policyRecord(policy));
  });

  app.put(PATH, { config, schema: schemas.replacePolicy }, async (request, reply) => {
    const name = policyName(request);
    if (name === undefined) return refuse(request, reply, 'malformed_parameter', NAME_HINT);
    const body = readJsonBody(request, policyRulesSchema, MISMATCH);
    if (body.kind === 'refused') return refuse(request, reply, body.reason, body.hint);
    const policy = { name, rules: body.value.rules };
    return answer(request, reply, 200, await replacePolicy(auth, actorOf(request), policy));
  });

  app.delete(PATH, { config, schema: schemas.deletePolicy }, async (request, reply) => {
    const name = policyName(request);
    if (name === undefined) return refuse(request, reply, 'malformed_parameter', NAME_HINT);
    const outcome = await deletePolicy(auth, actorOf(request), name);
    if (outcome.kind === 'refused') return refuse(request, reply, outcome.reason, outcome.hint);
    return reply.code(204).send();
  });
}

const NAME_HINT = 'a policy name is 1 to 64 of A-Z a-z 0-9 . _ - and starts with none of . _ -';

function policyName(request: FastifyRequest): string | undefined {
  const name = policyNameSchema.safeParse((request.params as { name?: unknown }).name).data;
  request.context.subject = name;
  return name;
}

function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  outcome: Done<PolicyRecord> | ChangeRefused,
): FastifyReply {
  if (outcome.kind === 'refused') return refuse(request, reply, outcome.reason, outcome.hint);
  return sendJson(reply, status, outcome.answer);
}
