// The key routes of the chamber on the wire (specification/keys.md#chamber-keys). What comes in is strict; results are
// per key and in the order of the request. How many keys one request may name is each route's own option.

import { z } from 'zod';
import { publicKeySchema } from './policy.ts';

export const MAX_LISTED_KEYS = 1000;
const MAX_CURSOR_CHARACTERS = 512;

const timestamp = z.iso.datetime();
const message = z.string().exactOptional();
const keySourceSchema = z.enum(['filesystem', 'dynamodb', 'memory']);
const keyStatusSchema = z.enum(['active', 'inactive']);

export const keyListQuerySchema = z.strictObject({
  status: keyStatusSchema.optional(),
  /** Keys that this source holds, whatever others hold them too. */
  source: keySourceSchema.optional(),
  limit: z.coerce.number().int().min(1).max(MAX_LISTED_KEYS).default(MAX_LISTED_KEYS),
  cursor: z.string().min(1).max(MAX_CURSOR_CHARACTERS).optional(),
});

const keyRecordSchema = z.object({
  pubkey: publicKeySchema,
  /** The source of the loaded copy; `dynamodb` where none is loaded. */
  source: keySourceSchema,
  sources: z.array(keySourceSchema).min(1),
  status: keyStatusSchema,
  /** It can sign on the replica that answers; a copy in a key file does although the row is inactive. */
  loaded: z.boolean(),
  /** For a key that is in no table: when it was loaded. */
  created_at: timestamp,
  updated_at: timestamp,
  has_backup: z.boolean(),
  has_deposit_data: z.boolean(),
});

export const keyListSchema = z.object({ keys: z.array(keyRecordSchema), next_cursor: z.string().nullable() });

/** A keystore or an interchange file: as JSON text, or inline. */
const jsonFile = z.union([z.string(), z.looseObject({})], { error: 'a JSON object, or the text of one' });

export const keyImportSchema = z
  .strictObject({
    keystores: z.array(jsonFile),
    passwords: z.array(z.string()),
    slashing_protection: jsonFile.exactOptional(),
    /** Persisted into the key table, or held in the memory of the replica that answers until it ends. */
    storage: z.strictObject({ persist: z.boolean() }),
  })
  .refine(({ keystores, passwords }) => keystores.length === passwords.length, {
    path: ['passwords'],
    message: 'one password for each keystore',
  });

/** `pubkey` is null where the keystore does not tell. */
export const keyImportAnswerSchema = z.object({
  data: z.array(
    z.object({ pubkey: publicKeySchema.nullable(), status: z.enum(['imported', 'duplicate', 'error']), message }),
  ),
});

export const keyPatchSchema = z.strictObject({
  keys: z
    .array(z.strictObject({ pubkey: publicKeySchema, status: keyStatusSchema }))
    .refine((keys) => new Set(keys.map(({ pubkey }) => pubkey)).size === keys.length, 'a public key is named twice'),
});

export const keyPatchAnswerSchema = z.object({
  data: z.array(
    z.object({ pubkey: publicKeySchema, status: z.enum(['updated', 'unchanged', 'not_found', 'error']), message }),
  ),
});

export const keyDeleteSchema = z.strictObject({ pubkeys: z.array(publicKeySchema) });

export const keyDeleteAnswerSchema = z.object({
  data: z.array(z.object({ pubkey: publicKeySchema, status: z.enum(['deleted', 'not_found', 'error']), message })),
  slashing_protection: z.looseObject({}),
});

/** One element of a deposit data file, as the staking deposit tool writes it. */
const depositDataSchema = z.object({
  pubkey: z.string(),
  withdrawal_credentials: z.string(),
  amount: z.int(),
  signature: z.string(),
  deposit_message_root: z.string(),
  deposit_data_root: z.string(),
  fork_version: z.string(),
  network_name: z.string(),
  deposit_cli_version: z.string(),
});

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

const generatedKey = z.object({ pubkey: publicKeySchema, backup: z.string().exactOptional() });
export const keyGenerateAnswerSchema = z.object({
  keys: z.array(generatedKey.extend({ deposit_data: depositDataSchema })),
});
export const keyGenerateBlsAnswerSchema = z.object({ keys: z.array(generatedKey) });

export const keyDepositDataSchema = z.strictObject({
  pubkeys: z.array(publicKeySchema),
  ...depositTerms,
  force_recompute_on_conflict: z.boolean().default(false),
});

export const keyDepositDataAnswerSchema = z.object({
  data: z.array(
    z.object({
      pubkey: publicKeySchema,
      status: z.enum(['created', 'existing', 'conflict', 'not_found']),
      deposit_data: depositDataSchema.exactOptional(),
    }),
  ),
});

export const keyBackupsSchema = z.strictObject({ pubkeys: z.array(publicKeySchema) });

/** `none`: the key was made without a backup, or was imported. */
export const keyBackupsAnswerSchema = z.object({
  data: z.array(
    z.object({
      pubkey: publicKeySchema,
      status: z.enum(['found', 'none', 'not_found']),
      backup: z.string().exactOptional(),
    }),
  ),
});

export type KeyListQuery = z.output<typeof keyListQuerySchema>;
export type KeyRecord = z.output<typeof keyRecordSchema>;
export type KeyList = z.output<typeof keyListSchema>;
export type KeyImportAnswer = z.output<typeof keyImportAnswerSchema>;
export type KeyPatchAnswer = z.output<typeof keyPatchAnswerSchema>;
export type KeyDeleteAnswer = z.output<typeof keyDeleteAnswerSchema>;
export type KeyGenerateAnswer = z.output<typeof keyGenerateAnswerSchema>;
export type KeyGenerateBlsAnswer = z.output<typeof keyGenerateBlsAnswerSchema>;
export type KeyBackupsAnswer = z.output<typeof keyBackupsAnswerSchema>;
export type DepositData = z.output<typeof depositDataSchema>;
export type KeyDepositDataAnswer = z.output<typeof keyDepositDataAnswerSchema>;
