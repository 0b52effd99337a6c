// What the Auth API answers (specification/authorization.md#auth-api); what it takes is in policy.ts. A token is in one
// answer only, that of its creation; no digest and no secret is in any record.

import { z } from 'zod';
import { MAX_DESCRIPTION_CHARACTERS, policyNameSchema, ruleSchema } from './policy.ts';

export const ACCESSOR_PATTERN = /^acc_[0-9a-f]{32}$/;
/** A token that the signer made: 256 random bits in base64url. */
const TOKEN_PATTERN = /^sr_(?:client|mgmt)_[A-Za-z0-9_-]{43}$/;

const timestamp = z.iso.datetime();
const revision = z.int().positive();

export const policyRecordSchema = z.object({
  name: policyNameSchema,
  rules: z.array(ruleSchema),
  revision,
  created_at: timestamp,
  updated_at: timestamp,
});

export const tokenRecordSchema = z.object({
  accessor: z.string().regex(ACCESSOR_PATTERN),
  kind: z.enum(['client', 'management']),
  policies: z.array(policyNameSchema),
  /** Empty: from anywhere. */
  bound_cidrs: z.array(z.string()),
  description: z.string().max(MAX_DESCRIPTION_CHARACTERS).nullable(),
  created_at: timestamp,
  /** Null: never. An expired token is listed for a day. */
  expires_at: timestamp.nullable(),
  root: z.boolean(),
  revision,
});

export const policyListSchema = z.object({ policies: z.array(policyRecordSchema) });

export const tokenListSchema = z.object({ tokens: z.array(tokenRecordSchema) });

/** POST /api/v1/auth/tokens. `token` is shown this once. */
export const createdTokenSchema = tokenRecordSchema.extend({ token: z.string().regex(TOKEN_PATTERN) });

export type PolicyRecord = z.output<typeof policyRecordSchema>;
export type TokenRecord = z.output<typeof tokenRecordSchema>;
export type CreatedToken = z.output<typeof createdTokenSchema>;
