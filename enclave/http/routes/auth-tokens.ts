// The tokens of the Auth API (specification/authorization.md#auth-api). Management tokens create, list, show and revoke
// tokens. Any token may look itself up. Client tokens may renew themselves. Mounted in the stateful mode only. Only the
// answer to its creation contains a token.

import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../observe/clock.ts';
import { SignerError } from '../../api/errors.ts';
import { renewRequestSchema, tokenRequestSchema } from '../../api/policy.ts';
import { pacedRenewals } from '../../auth/stateful/renewal-pace.ts';
import { findToken, tokenRecord, tokensOf } from '../../auth/stateful/snapshot.ts';
import type { StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { issueToken, revokeToken } from '../../auth/stateful/tokens.ts';
import { accepted } from '../accepted.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../caller.ts';
import { sendJson, sendNothing } from '../replies.ts';
import * as schemas from './auth-openapi.ts';

const LIST_PATH = '/api/v1/auth/tokens';
const PATH = '/api/v1/auth/tokens/:accessor';
const management = { access: { kind: 'management' } } as const;
const anyToken = { access: { kind: 'any_token' } } as const;
const MISMATCH = { mismatch: 'invalid_token_request' } as const;

export function mountAuthTokens(app: FastifyInstance, auth: StatefulAuthenticator, clock: Clock): void {
  mountOwnToken(app, auth, clock);

  app.get(LIST_PATH, { config: management, schema: schemas.listTokens }, async (_request, reply) => {
    const { snapshot } = auth;
    return sendJson(reply, 200, { tokens: tokensOf(snapshot).map((token) => tokenRecord(snapshot, token)) });
  });

  app.post(LIST_PATH, { config: management, schema: schemas.createToken }, async (request, reply) => {
    const wanted = readJsonBody(request, tokenRequestSchema, MISMATCH);
    const { answer } = accepted(await issueToken(auth, callerOf(request).accessor, wanted));
    request.context.subject = answer.accessor;
    return sendJson(reply.header('cache-control', 'no-store'), 201, answer);
  });

  app.get(PATH, { config: management, schema: schemas.getToken }, async (request, reply) => {
    const { accessor } = request.params as { accessor: string };
    const { snapshot } = auth;
    const token = findToken(snapshot, accessor);
    if (token === undefined) throw new SignerError('not_found');
    request.context.subject = accessor;
    return sendJson(reply, 200, tokenRecord(snapshot, token));
  });

  app.delete(PATH, { config: management, schema: schemas.revokeToken }, async (request, reply) => {
    const { accessor } = request.params as { accessor: string };
    const done = accepted(await revokeToken(auth, callerOf(request).accessor, accessor));
    request.context.subject = accessor;
    return sendNothing(reply, done);
  });
}

function mountOwnToken(app: FastifyInstance, auth: StatefulAuthenticator, clock: Clock): void {
  const renew = pacedRenewals(auth, clock);

  app.get(`${LIST_PATH}/lookup-self`, { config: anyToken, schema: schemas.lookUpSelf }, async (request, reply) => {
    const { snapshot } = auth;
    const token = findToken(snapshot, callerOf(request).accessor);
    if (token === undefined) throw new SignerError('invalid_token'); // revoked a moment ago
    return sendJson(reply, 200, tokenRecord(snapshot, token));
  });

  app.post(`${LIST_PATH}/renew-self`, { config: anyToken, schema: schemas.renewSelf }, async (request, reply) => {
    const { accessor } = callerOf(request);
    const wanted = readJsonBody(request, renewRequestSchema, { ...MISMATCH, whenEmpty: {} });
    const { answer } = accepted(await renew(accessor, wanted.ttl_seconds));
    return sendJson(reply, 200, answer);
  });
}
