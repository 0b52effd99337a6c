// The key routes of the chamber on the wire (specification/keys.md#chamber-keys). What comes in is strict.

import { z } from 'zod';
import { publicKeySchema } from './policy.ts';

export const MAX_LISTED_KEYS = 1000;
const MAX_CURSOR_CHARACTERS = 512;

export const keySourceSchema = z.enum(['filesystem', 'dynamodb', 'memory']);
export const keyStatusSchema = z.enum(['active', 'inactive']);

export const keyListQuerySchema = z.strictObject({
  status: keyStatusSchema.optional(),
  source: keySourceSchema.optional(),
  limit: z.coerce.number().int().min(1).max(MAX_LISTED_KEYS).default(MAX_LISTED_KEYS),
  cursor: z.string().min(1).max(MAX_CURSOR_CHARACTERS).optional(),
});

const jsonFile = z.union([z.string(), z.looseObject({})], { error: 'a JSON object, or the text of one' });

export const keyImportSchema = z
  .strictObject({
    keystores: z.array(jsonFile),
    passwords: z.array(z.string()),
    slashing_protection: jsonFile.exactOptional(),
    storage: z.strictObject({ persist: z.boolean() }),
  })
  .refine(({ keystores, passwords }) => keystores.length === passwords.length, {
    path: ['passwords'],
    message: 'one password for each keystore',
  });

export const keyPatchSchema = z.strictObject({
  keys: z
    .array(z.strictObject({ pubkey: publicKeySchema, status: keyStatusSchema }))
    .refine((keys) => new Set(keys.map(({ pubkey }) => pubkey)).size === keys.length, 'a public key is named twice'),
});

export const keyDeleteSchema = z.strictObject({ pubkeys: z.array(publicKeySchema) });

const depositTerms = {
  withdrawal_credentials: z.string().exactOptional(),
  withdrawal_address: z.string().exactOptional(),
  amount_gwei: z.int().exactOptional(),
  compounding: z.boolean().exactOptional(),
};

const generated = {
  count: z.int().min(1),
  require_backup: z.boolean().default(false),
};

export const keyGenerateSchema = z.strictObject({ ...generated, ...depositTerms });
export const keyGenerateBlsSchema = z.strictObject(generated);

export const keyDepositDataSchema = z.strictObject({
  pubkeys: z.array(publicKeySchema),
  ...depositTerms,
  force_recompute_on_conflict: z.boolean().default(false),
});

export const keyBackupsSchema = z.strictObject({ pubkeys: z.array(publicKeySchema) });

export type KeyListQuery = z.output<typeof keyListQuerySchema>;
