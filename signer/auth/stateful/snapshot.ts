// The authorization state at one revision, immutable. A token bound to a policy that is not here is denied everything.

import type { PolicyRecord, TokenRecord } from '../../api/auth.ts';
import type { Caller } from '../authenticator.ts';
import { type Cidr, parseSafeCidrs } from '../cidr.ts';
import { type CompiledAccess, compilePolicy, joinAccess, NO_ACCESS } from '../evaluate.ts';
import {
  identifierOf,
  isAuthenticRow,
  kindOf,
  type Manifest,
  type PolicyContent,
  parsePolicyText,
  parseTokenText,
  pkOf,
  rowCode,
  type TokenContent,
} from './rows.ts';
import type { AuthHead, AuthRow } from './state.ts';

interface VerifiedRowBase {
  readonly pk: string;
  readonly revision: number;
  readonly contentBytes: number;
  readonly code: string;
}

interface PolicyRow extends VerifiedRowBase, PolicyContent {
  readonly row: 'policy';
  readonly name: string;
  readonly access: CompiledAccess;
}

interface TokenRow extends VerifiedRowBase, TokenContent {
  readonly row: 'token';
  readonly accessor: string;
  readonly cidrs: readonly Cidr[];
  readonly expiresAtMs: number;
}

export type VerifiedAuthRow = PolicyRow | TokenRow;

export interface TokenCaller {
  readonly caller: Caller;
  readonly token: TokenRow;
}

export interface AuthSnapshot {
  readonly revision: number;
  readonly mac: Uint8Array;
  readonly manifest: Manifest;
  /** By pk: exactly the rows that the manifest names. */
  readonly rows: ReadonlyMap<string, VerifiedAuthRow>;
  readonly callers: ReadonlyMap<string, TokenCaller>;
}

export function verifyRow(key: Uint8Array, row: AuthRow): VerifiedAuthRow | undefined {
  if (!isAuthenticRow(key, row)) return undefined;
  const { pk, revision, content } = row;
  const base = { pk, revision, code: rowCode(row), contentBytes: Buffer.byteLength(content) };
  switch (kindOf(pk)) {
    case 'policy':
      return policyRow(base, parsePolicyText(content));
    case 'token':
      return tokenRow(base, parseTokenText(content));
    default:
      return undefined;
  }
}

/** @param candidates verified rows; those that the manifest does not name are left out */
export function snapshotOf(
  { revision, mac }: Pick<AuthHead, 'revision' | 'mac'>,
  manifest: Manifest,
  candidates: ReadonlyMap<string, VerifiedAuthRow>,
): AuthSnapshot {
  const rows = new Map<string, VerifiedAuthRow>();
  for (const [pk, code] of manifest.rows) {
    const row = candidates.get(pk);
    if (row?.code === code) rows.set(pk, row);
  }
  const callers = new Map<string, TokenCaller>();
  for (const token of rows.values()) {
    if (token.row === 'token') callers.set(token.digest, { caller: callerOf(token, rows), token });
  }
  return { revision, mac, manifest, rows, callers };
}

export function policiesOf({ rows }: AuthSnapshot): PolicyRow[] {
  const policies = [...rows.values()].filter((row) => row.row === 'policy');
  return policies.sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function tokensOf({ rows }: AuthSnapshot): TokenRow[] {
  const tokens = [...rows.values()].filter((row) => row.row === 'token');
  return tokens.sort((a, b) => (a.createdAt + a.accessor < b.createdAt + b.accessor ? -1 : 1));
}

export function tokensWithoutLifetime(snapshot: AuthSnapshot): TokenRow[] {
  return tokensOf(snapshot).filter(({ pk, expiresAt }) => expiresAt === null && pk !== snapshot.manifest.root);
}

export function findPolicy({ rows }: AuthSnapshot, name: string): PolicyRow | undefined {
  const row = rows.get(pkOf('policy', name));
  return row?.row === 'policy' ? row : undefined;
}

export function findToken({ rows }: AuthSnapshot, accessor: string): TokenRow | undefined {
  const row = rows.get(pkOf('token', accessor));
  return row?.row === 'token' ? row : undefined;
}

export function findCaller(snapshot: AuthSnapshot, accessor: string): TokenCaller | undefined {
  const token = findToken(snapshot, accessor);
  return token === undefined ? undefined : snapshot.callers.get(token.digest);
}

export function isExpired({ expiresAtMs }: TokenRow, now: number): boolean {
  return now >= expiresAtMs;
}

export function policyRecord({ name, rules, revision, createdAt, updatedAt }: PolicyRow): PolicyRecord {
  return { name, rules: rules as PolicyRecord['rules'], revision, created_at: createdAt, updated_at: updatedAt };
}

export function tokenRecord({ manifest }: Pick<AuthSnapshot, 'manifest'>, token: TokenRow): TokenRecord {
  return {
    accessor: token.accessor,
    kind: token.kind,
    policies: [...token.policies],
    bound_cidrs: [...token.boundCidrs],
    description: token.description,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    root: manifest.root === token.pk,
    revision: token.revision,
  };
}

function policyRow(base: VerifiedRowBase, content: PolicyContent | undefined): PolicyRow | undefined {
  if (content === undefined) return undefined;
  const name = identifierOf(base.pk);
  return { ...base, ...content, row: 'policy', name, access: compilePolicy({ name, rules: content.rules }) };
}

function tokenRow(base: VerifiedRowBase, content: TokenContent | undefined): TokenRow | undefined {
  if (content === undefined) return undefined;
  const cidrs = parseSafeCidrs(content.boundCidrs);
  if ('refused' in cidrs) return undefined;
  const expiresAtMs = content.expiresAt === null ? Number.POSITIVE_INFINITY : Date.parse(content.expiresAt);
  return { ...base, ...content, row: 'token', accessor: identifierOf(base.pk), cidrs, expiresAtMs };
}

function callerOf(token: TokenRow, rows: ReadonlyMap<string, VerifiedAuthRow>): Caller {
  const { accessor } = token;
  const parts: CompiledAccess[] = [];
  for (const name of token.policies) {
    const policy = rows.get(pkOf('policy', name));
    if (policy?.row !== 'policy') return { accessor, access: NO_ACCESS, management: false };
    parts.push(policy.access);
  }
  return { accessor, access: joinAccess(parts), management: token.kind === 'management' };
}
