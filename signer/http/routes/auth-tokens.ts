// The tokens of the Auth API (specification/authorization.md#auth-api), in the stateful mode. Only the answer to its
// creation contains a token.

import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../../common/observe/clock.ts';
import type { TokenRecord } from '../../api/auth.ts';
import { SignerError } from '../../api/errors.ts';
import { renewRequestSchema, tokenRequestSchema } from '../../api/policy.ts';
import { findToken, tokenRecord, tokensOf } from '../../auth/stateful/snapshot.ts';
import { MAX_TOKENS } from '../../auth/stateful/state.ts';
import type { ChangeRefused, Done, StatefulAuthenticator } from '../../auth/stateful/stateful.ts';
import { issueToken, renewedLifetimeSeconds, renewToken, revokeToken } from '../../auth/stateful/tokens.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf } from '../context.ts';
import { accepted, sendJson, sendNothing } from '../replies.ts';

const LIST_PATH = '/api/v1/auth/tokens';
const PATH = '/api/v1/auth/tokens/:accessor';
const management = { access: { kind: 'management' } } as const;
const anyToken = { access: { kind: 'any_token' } } as const;
const MISMATCH = { mismatch: 'invalid_token_request' } as const;

export function mountAuthTokens(app: FastifyInstance, auth: StatefulAuthenticator, clock: Clock): void {
  mountOwnToken(app, auth, clock);

  app.get(LIST_PATH, { config: management }, async (_request, reply) => {
    const { snapshot } = auth;
    return sendJson(reply, 200, { tokens: tokensOf(snapshot).map((token) => tokenRecord(snapshot, token)) });
  });

  app.post(LIST_PATH, { config: management }, async (request, reply) => {
    const wanted = readJsonBody(request, tokenRequestSchema, MISMATCH);
    const { answer } = accepted(await issueToken(auth, callerOf(request).accessor, wanted));
    request.context.subject = answer.accessor;
    return sendJson(reply.header('cache-control', 'no-store'), 201, answer);
  });

  app.get(PATH, { config: management }, async (request, reply) => {
    const { accessor } = request.params as { accessor: string };
    const { snapshot } = auth;
    const token = findToken(snapshot, accessor);
    if (token === undefined) throw new SignerError('not_found');
    request.context.subject = accessor;
    return sendJson(reply, 200, tokenRecord(snapshot, token));
  });

  app.delete(PATH, { config: management }, async (request, reply) => {
    const { accessor } = request.params as { accessor: string };
    const done = accepted(await revokeToken(auth, callerOf(request).accessor, accessor));
    request.context.subject = accessor;
    return sendNothing(reply, done);
  });
}

function mountOwnToken(app: FastifyInstance, auth: StatefulAuthenticator, clock: Clock): void {
  const renew = pacedRenewals(auth, clock);

  app.get(`${LIST_PATH}/lookup-self`, { config: anyToken }, async (request, reply) => {
    const { snapshot } = auth;
    const token = findToken(snapshot, callerOf(request).accessor);
    if (token === undefined) throw new SignerError('invalid_token'); // revoked a moment ago
    return sendJson(reply, 200, tokenRecord(snapshot, token));
  });

  app.post(`${LIST_PATH}/renew-self`, { config: anyToken }, async (request, reply) => {
    const { accessor } = callerOf(request);
    const wanted = readJsonBody(request, renewRequestSchema, { ...MISMATCH, whenEmpty: {} });
    const { answer } = accepted(await renew(accessor, wanted.ttl_seconds));
    return sendJson(reply, 200, answer);
  });
}

// How often a token's renewals are written. A renewal is a commit that every replica has to read: without a pace the
// least credential could keep the cluster busy.

/** The next renewal counts after half of the lifetime that the last one gave, within these bounds. */
export const SHORTEST_PAUSE_SECONDS = 5;
export const LONGEST_PAUSE_SECONDS = 60;

type Renewals = (accessor: string, ttlSeconds: number | undefined) => Promise<Done<TokenRecord> | ChangeRefused>;

function pacedRenewals(auth: StatefulAuthenticator, clock: Pick<Clock, 'monotonic'>): Renewals {
  const nextAt = new Map<string, number>();
  return async (accessor, ttlSeconds) => {
    const { snapshot } = auth;
    const token = findToken(snapshot, accessor);
    if (token === undefined || token.ttlSeconds === null) return renewToken(auth, accessor, ttlSeconds);
    const now = clock.monotonic();
    const early = now < (nextAt.get(accessor) ?? Number.NEGATIVE_INFINITY);
    if (early) return { kind: 'done', answer: tokenRecord(snapshot, token) };
    if (nextAt.size >= MAX_TOKENS) forgetPast(nextAt, now);
    nextAt.set(accessor, now + pauseSeconds(renewedLifetimeSeconds(token.ttlSeconds, ttlSeconds)) * 1000);
    let renewed = false;
    try {
      const outcome = await renewToken(auth, accessor, ttlSeconds);
      renewed = outcome.kind === 'done';
      return outcome;
    } finally {
      if (!renewed) nextAt.delete(accessor); // it may be asked for again at once
    }
  };
}

function pauseSeconds(lifetimeSeconds: number): number {
  return Math.min(Math.max(lifetimeSeconds / 2, SHORTEST_PAUSE_SECONDS), LONGEST_PAUSE_SECONDS);
}

function forgetPast(nextAt: Map<string, number>, now: number): void {
  for (const [accessor, at] of nextAt) if (at <= now) nextAt.delete(accessor);
}
