// The Auth API (specification/authorization.md#auth-api). A successful answer means that the change is durable.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Clock } from '../../../common/observe/clock.ts';
import { SignerError } from '../../api/errors.ts';
import {
  policyNameSchema,
  policyRulesSchema,
  policySchema,
  renewRequestSchema,
  tokenRequestSchema,
} from '../../api/policy.ts';
import { createPolicy, deletePolicy, replacePolicy } from '../../auth/stateful/policies.ts';
import {
  findPolicy,
  findToken,
  policiesOf,
  policyRecord,
  tokenRecord,
  tokensOf,
} from '../../auth/stateful/snapshot.ts';
import type { StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { issueToken, revokeToken } from '../../auth/stateful/tokens.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../context.ts';
import { accepted, sendJson, sendNothing } from '../replies.ts';
import { pacedRenewals } from './renewals.ts';

const TOKENS_PATH = '/api/v1/auth/tokens';
const TOKEN_PATH = '/api/v1/auth/tokens/:accessor';
const management = { access: { kind: 'management' } } as const;
const anyToken = { access: { kind: 'any_token' } } as const;
const TOKEN_MISMATCH = { mismatch: 'invalid_token_request' } as const;

export function mountAuthTokens(app: FastifyInstance, auth: StatefulAuthenticator, clock: Clock): void {
  mountOwnToken(app, auth, clock);

  app.get(TOKENS_PATH, { config: management }, async (_request, reply) => {
    const { snapshot } = auth;
    return sendJson(reply, 200, { tokens: tokensOf(snapshot).map((token) => tokenRecord(snapshot, token)) });
  });

  app.post(TOKENS_PATH, { config: management }, async (request, reply) => {
    const wanted = readJsonBody(request, tokenRequestSchema, TOKEN_MISMATCH);
    const { answer } = accepted(await issueToken(auth, callerOf(request).accessor, wanted));
    request.context.subject = answer.accessor;
    return sendJson(reply.header('cache-control', 'no-store'), 201, answer);
  });

  app.get(TOKEN_PATH, { config: management }, async (request, reply) => {
    const { accessor } = request.params as { accessor: string };
    const { snapshot } = auth;
    const token = findToken(snapshot, accessor);
    if (token === undefined) throw new SignerError('not_found');
    request.context.subject = accessor;
    return sendJson(reply, 200, tokenRecord(snapshot, token));
  });

  app.delete(TOKEN_PATH, { config: management }, async (request, reply) => {
    const { accessor } = request.params as { accessor: string };
    const done = accepted(await revokeToken(auth, callerOf(request).accessor, accessor));
    request.context.subject = accessor;
    return sendNothing(reply, done);
  });
}

function mountOwnToken(app: FastifyInstance, auth: StatefulAuthenticator, clock: Clock): void {
  const renew = pacedRenewals(auth, clock);

  app.get(`${TOKENS_PATH}/lookup-self`, { config: anyToken }, async (request, reply) => {
    const { snapshot } = auth;
    const token = findToken(snapshot, callerOf(request).accessor);
    if (token === undefined) throw new SignerError('invalid_token'); // revoked a moment ago
    return sendJson(reply, 200, tokenRecord(snapshot, token));
  });

  app.post(`${TOKENS_PATH}/renew-self`, { config: anyToken }, async (request, reply) => {
    const { accessor } = callerOf(request);
    const wanted = readJsonBody(request, renewRequestSchema, { ...TOKEN_MISMATCH, whenEmpty: {} });
    const { answer } = accepted(await renew(accessor, wanted.ttl_seconds));
    return sendJson(reply, 200, answer);
  });
}

const POLICIES_PATH = '/api/v1/auth/policies';
const POLICY_PATH = '/api/v1/auth/policies/:name';
const POLICY_MISMATCH = { mismatch: 'invalid_policy' } as const;

export function mountAuthPolicies(app: FastifyInstance, auth: StatefulAuthenticator): void {
  app.get(POLICIES_PATH, { config: management }, async (_request, reply) =>
    sendJson(reply, 200, { policies: policiesOf(auth.snapshot).map(policyRecord) }),
  );

  app.post(POLICIES_PATH, { config: management }, async (request, reply) => {
    const policy = readJsonBody(request, policySchema, POLICY_MISMATCH);
    request.context.subject = policy.name;
    const { answer } = accepted(await createPolicy(auth, callerOf(request).accessor, policy));
    return sendJson(reply, 201, answer);
  });

  app.get(POLICY_PATH, { config: management }, async (request, reply) => {
    const policy = findPolicy(auth.snapshot, policyName(request));
    if (policy === undefined) throw new SignerError('not_found');
    return sendJson(reply, 200, policyRecord(policy));
  });

  app.put(POLICY_PATH, { config: management }, async (request, reply) => {
    const name = policyName(request);
    const { rules } = readJsonBody(request, policyRulesSchema, POLICY_MISMATCH);
    const { answer } = accepted(await replacePolicy(auth, callerOf(request).accessor, { name, rules }));
    return sendJson(reply, 200, answer);
  });

  app.delete(POLICY_PATH, { config: management }, async (request, reply) => {
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
