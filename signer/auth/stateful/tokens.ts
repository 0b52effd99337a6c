// Creating, revoking and renewing tokens (specification/authorization.md#tokens). Expired ones are kept for a day for
// those who read audit lines.

import assert from 'node:assert/strict';
import type { CreatedToken, TokenRecord } from '../../api/auth.ts';
import type { TokenRequest } from '../../api/policy.ts';
import { parseSafeCidrs } from '../cidr.ts';
import { createAccessor, createToken } from '../tokens.ts';
import { kindOf, pkOf, type TokenContent, tokenFields } from './rows.ts';
import { type AuthSnapshot, findPolicy, findToken, tokenRecord, tokensOf } from './snapshot.ts';
import { MAX_TOKENS } from './state.ts';
import type { ChangeRefused, Done, StatefulAuthenticator } from './stateful.ts';
import type { AuthChange } from './write.ts';

const KEEP_EXPIRED_MS = 24 * 60 * 60 * 1000;
const MAX_DELETED_AT_ONCE = 50;

export async function issueToken(
  auth: StatefulAuthenticator,
  actor: string,
  request: TokenRequest,
): Promise<Done<CreatedToken> | ChangeRefused> {
  const cidrs = parseSafeCidrs(request.bound_cidrs);
  if ('refused' in cidrs) return refused(`bound_cidrs: ${cidrs.refused}`);
  const kind = request.management ? 'management' : 'client';
  const accessor = createAccessor();
  const token = createToken(kind);
  try {
    const unchanging = {
      kind,
      digest: auth.digest(token),
      policies: [...new Set(request.policies)],
      boundCidrs: [...new Set(cidrs.map((cidr) => cidr.text))],
      description: request.description ?? null,
      ttlSeconds: request.ttl_seconds ?? null,
    } as const;
    const outcome = await auth.change({ accessor: actor, needsManagement: true }, (snapshot, now) => {
      const outdated = outdatedTokens(snapshot, now);
      const createdAt = new Date(now).toISOString();
      const content = { ...unchanging, createdAt, expiresAt: expiry(now, unchanging.ttlSeconds) };
      return refusalOf(snapshot, content, outdated.length) ?? { ...putToken(accessor, content), deletes: outdated };
    });
    if (outcome.kind === 'refused') return outcome;
    return { kind: 'done', answer: { ...outcome.answer, token: token.toString('ascii') } };
  } finally {
    token.fill(0);
  }
}

/** Also revokes a token whose row was altered or removed: a person who puts the row back does not revive the token. */
export function revokeToken(
  auth: StatefulAuthenticator,
  actor: string,
  accessor: string,
): Promise<Done<undefined> | ChangeRefused> {
  return auth.change({ accessor: actor, needsManagement: true }, (snapshot) => {
    const pk = pkOf('token', accessor);
    if (!snapshot.manifest.rows.has(pk)) return { kind: 'refused', reason: 'not_found' };
    return { kind: 'change', puts: [], deletes: [pk], answer: () => undefined };
  });
}

/** At most the lifetime that the token was created with. */
export function renewToken(
  auth: StatefulAuthenticator,
  accessor: string,
  ttlSeconds: number | undefined,
): Promise<Done<TokenRecord> | ChangeRefused> {
  return auth.change({ accessor, needsManagement: false }, (snapshot, now) => {
    const token = findToken(snapshot, accessor);
    assert(token !== undefined, 'a live token is there');
    if (token.ttlSeconds === null) return { kind: 'done', answer: tokenRecord(snapshot, token) };
    return putToken(accessor, {
      ...token,
      expiresAt: expiry(now, renewedLifetimeSeconds(token.ttlSeconds, ttlSeconds)),
    });
  });
}

export function renewedLifetimeSeconds(original: number, asked: number | undefined): number {
  return Math.min(asked ?? original, original);
}

function putToken(accessor: string, content: TokenContent): AuthChange<TokenRecord> {
  return {
    kind: 'change',
    puts: [{ pk: pkOf('token', accessor), fields: tokenFields(content) }],
    deletes: [],
    answer: (next) => {
      const token = findToken(next, accessor);
      assert(token !== undefined, 'a token that was put is there');
      return tokenRecord(next, token);
    },
  };
}

function refusalOf(snapshot: AuthSnapshot, { policies }: TokenContent, leaving: number): ChangeRefused | undefined {
  const absent = policies.find((name) => findPolicy(snapshot, name) === undefined);
  if (absent !== undefined) return refused(`policies: there is no policy ${absent}`);
  const tokens = [...snapshot.manifest.rows.keys()].filter((pk) => kindOf(pk) === 'token').length;
  return tokens - leaving >= MAX_TOKENS
    ? refused(`there are ${MAX_TOKENS} tokens already: revoke some first`)
    : undefined;
}

function outdatedTokens(snapshot: AuthSnapshot, now: number): string[] {
  const outdated = tokensOf(snapshot).filter((token) => now >= token.expiresAtMs + KEEP_EXPIRED_MS);
  return outdated.slice(0, MAX_DELETED_AT_ONCE).map(({ pk }) => pk);
}

function expiry(now: number, lifetimeSeconds: number | null): string | null {
  return lifetimeSeconds === null ? null : new Date(now + lifetimeSeconds * 1000).toISOString();
}

function refused(hint: string): ChangeRefused {
  return { kind: 'refused', reason: 'invalid_token_request', hint };
}
