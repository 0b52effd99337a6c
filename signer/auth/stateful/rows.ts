// How policies and tokens are spelled in the state table, and what makes a row or a head count
// (specification/tables.md#auth-rows). A row that does not verify is missing everywhere.

import assert from 'node:assert/strict';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { parseJson } from '../../../common/formats/parse-json.ts';
import { policyNameSchema, policyRulesSchema, type Rule } from '../../api/policy.ts';
import { type AuthHead, type AuthRow, MAX_MANIFEST_BYTES } from './state.ts';

export interface PolicyContent {
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly rules: readonly Rule[];
}

export interface TokenContent {
  readonly kind: 'client' | 'management';
  /** `tokenDigest` under the token sub-key. */
  readonly digest: string;
  readonly policies: readonly string[];
  /** Canonical and safe. Empty: from anywhere. */
  readonly boundCidrs: readonly string[];
  readonly description: string | null;
  readonly createdAt: string;
  /** Null: never. */
  readonly expiresAt: string | null;
  /** Null exactly when it never expires. */
  readonly ttlSeconds: number | null;
}

export interface Manifest {
  /** So that making another root token revokes a row that is hidden too. */
  readonly root: string | null;
  /** pk → `rowCode` of the one row that counts. */
  readonly rows: ReadonlyMap<string, string>;
}

/** One attempt to write. Its id makes what two replicas write at one revision differ, however alike. */
interface Commit {
  readonly revision: number;
  readonly id: string;
}

export type RowFields = Readonly<Record<string, unknown>>;

export type RowKind = 'policy' | 'token';

const PREFIXES = { policy: 'POLICY#', token: 'TOKEN#' } as const;
const MAC_BYTES = 32;
const ROW_CODE_BYTES = 16;
const COMMIT_ID_BYTES = 12;
const ROW_DOMAIN = 'strongroom auth row v1';
const HEAD_DOMAIN = 'strongroom auth head v1';

export function pkOf(kind: RowKind, identifier: string): string {
  return PREFIXES[kind] + identifier;
}

export function kindOf(pk: string): RowKind | undefined {
  if (pk.startsWith(PREFIXES.policy)) return 'policy';
  return pk.startsWith(PREFIXES.token) ? 'token' : undefined;
}

export function identifierOf(pk: string): string {
  return pk.slice(pk.indexOf('#') + 1);
}

export function policyFields({ createdAt, updatedAt, rules }: PolicyContent): RowFields {
  const ordered = rules.map((rule) => ({
    effect: rule.effect,
    scopes: rule.scopes,
    keys: rule.keys,
    operations: rule.operations,
    fee_recipients: rule.fee_recipients,
    max_gas_limit: rule.max_gas_limit,
    builders: rule.builders,
    builder_indices: rule.builder_indices,
    only_for_own_blocks: rule.only_for_own_blocks,
  }));
  return { created_at: createdAt, updated_at: updatedAt, rules: ordered };
}

export function tokenFields(token: TokenContent): RowFields {
  return {
    kind: token.kind,
    digest: token.digest,
    policies: token.policies,
    bound_cidrs: token.boundCidrs,
    description: token.description,
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    ttl_seconds: token.ttlSeconds,
  };
}

export function parsePolicyText(text: string): PolicyContent | undefined {
  const policy = parsed(policyContentSchema, text);
  if (policy === undefined) return undefined;
  return { createdAt: policy.created_at, updatedAt: policy.updated_at, rules: policy.rules };
}

export function parseTokenText(text: string): TokenContent | undefined {
  const token = parsed(tokenContentSchema, text);
  if (token === undefined) return undefined;
  const { kind, digest, policies, description } = token;
  return {
    kind,
    digest,
    policies,
    boundCidrs: token.bound_cidrs,
    description,
    createdAt: token.created_at,
    expiresAt: token.expires_at,
    ttlSeconds: token.ttl_seconds,
  };
}

export function makeRow(key: Uint8Array, pk: string, { revision, id }: Commit, fields: RowFields): AuthRow {
  const content = JSON.stringify({ version: 1, commit: id, ...fields });
  return { pk, revision, content, mac: code(key, ROW_DOMAIN, pk, String(revision), content) };
}

export function isAuthenticRow(key: Uint8Array, { pk, revision, content, mac }: AuthRow): boolean {
  return isCode(mac, code(key, ROW_DOMAIN, pk, String(revision), content));
}

export function newCommit(revision: number): Commit {
  return { revision, id: randomBytes(COMMIT_ID_BYTES).toString('base64url') };
}

/** 128 bits of the row's HMAC, which covers its revision and content. */
export function rowCode({ mac }: Pick<AuthRow, 'mac'>): string {
  return Buffer.from(mac).toString('base64url', 0, ROW_CODE_BYTES);
}

export function makeHead(key: Uint8Array, { revision, id }: Commit, { root, rows }: Manifest): AuthHead {
  assert(Number.isSafeInteger(revision) && revision > 0, 'a revision is a positive whole number');
  assert(root === null || rows.has(root), 'the root token is one of the rows');
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1));
  const manifest = JSON.stringify({ version: 1, commit: id, root, rows: sorted });
  assert(Buffer.byteLength(manifest) <= MAX_MANIFEST_BYTES, 'the limits on rows keep the manifest within one item');
  return { revision, manifest, mac: code(key, HEAD_DOMAIN, String(revision), manifest) };
}

export function openHead(key: Uint8Array, { revision, manifest, mac }: AuthHead): Manifest | undefined {
  if (!isCode(mac, code(key, HEAD_DOMAIN, String(revision), manifest))) return undefined;
  const content = parsed(manifestSchema, manifest);
  return content === undefined ? undefined : { root: content.root, rows: new Map(content.rows) };
}

const timestamp = z.iso.datetime();
const everyRow = { version: z.literal(1), commit: z.string() };

const policyContentSchema = z.strictObject({
  ...everyRow,
  created_at: timestamp,
  updated_at: timestamp,
  rules: policyRulesSchema.shape.rules,
});

const tokenContentSchema = z.strictObject({
  ...everyRow,
  kind: z.enum(['client', 'management']),
  digest: z.string().regex(/^[0-9a-f]{64}$/),
  policies: z.array(policyNameSchema),
  bound_cidrs: z.array(z.string()),
  description: z.string().nullable(),
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  ttl_seconds: z.int().positive().nullable(),
});

const manifestSchema = z.strictObject({
  ...everyRow,
  root: z.string().nullable(),
  rows: z.array(z.tuple([z.string(), z.string()])),
});

function parsed<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> | undefined {
  return schema.safeParse(parseJson(text)).data;
}

/** Every part says its own length, so no two lists of parts have the same bytes. */
function code(key: Uint8Array, ...parts: readonly string[]): Buffer {
  const hmac = createHmac('sha256', key);
  for (const part of parts) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(Buffer.byteLength(part));
    hmac.update(length).update(part, 'utf8');
  }
  return hmac.digest();
}

function isCode(stored: Uint8Array, expected: Uint8Array): boolean {
  return stored.length === MAC_BYTES && timingSafeEqual(stored, expected);
}
