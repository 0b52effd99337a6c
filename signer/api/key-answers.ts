// What the key routes answer (specification/keys.md#chamber-keys): the signer writes as these types say, and the
// operator reads with the schemas. Results are per key and in the order of the request. An enclave loads none of it.

import { z } from 'zod';
import { keySourceSchema, keyStatusSchema } from './keys.ts';
import { publicKeySchema } from './policy.ts';

const timestamp = z.iso.datetime();

const message = z.string().exactOptional();

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
  /** Of a share, as api/distributed.ts; null for a whole key. */
  distributed: z
    .object({ participant_id: z.string(), signing_threshold: z.string(), participants: z.string() })
    .nullable(),
});

export const keyListSchema = z.object({ keys: z.array(keyRecordSchema), next_cursor: z.string().nullable() });

/** `pubkey` is null where the keystore does not tell. */
export const keyImportAnswerSchema = z.object({
  data: z.array(
    z.object({ pubkey: publicKeySchema.nullable(), status: z.enum(['imported', 'duplicate', 'error']), message }),
  ),
});

export const keyPatchAnswerSchema = z.object({
  data: z.array(
    z.object({ pubkey: publicKeySchema, status: z.enum(['updated', 'unchanged', 'not_found', 'error']), message }),
  ),
});

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

const generatedKey = z.object({ pubkey: publicKeySchema, backup: z.string().exactOptional() });

export const keyGenerateAnswerSchema = z.object({
  keys: z.array(generatedKey.extend({ deposit_data: depositDataSchema })),
});

export const keyGenerateBlsAnswerSchema = z.object({ keys: z.array(generatedKey) });

export const keyDepositDataAnswerSchema = z.object({
  data: z.array(
    z.object({
      pubkey: publicKeySchema,
      status: z.enum(['created', 'existing', 'conflict', 'not_found']),
      deposit_data: depositDataSchema.exactOptional(),
    }),
  ),
});

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

export type KeyRecord = z.output<typeof keyRecordSchema>;

export type KeyListAnswer = z.output<typeof keyListSchema>;

export type KeyImportAnswer = z.output<typeof keyImportAnswerSchema>;

export type KeyPatchAnswer = z.output<typeof keyPatchAnswerSchema>;

export type KeyDeleteAnswer = z.output<typeof keyDeleteAnswerSchema>;

export type KeyGenerateAnswer = z.output<typeof keyGenerateAnswerSchema>;

export type KeyGenerateBlsAnswer = z.output<typeof keyGenerateBlsAnswerSchema>;

export type KeyBackupsAnswer = z.output<typeof keyBackupsAnswerSchema>;

export type DepositData = z.output<typeof depositDataSchema>;

export type KeyDepositDataAnswer = z.output<typeof keyDepositDataAnswerSchema>;

export const keystoreListSchema = z.object({
  data: z.array(
    z.object({ validating_pubkey: publicKeySchema, derivation_path: z.string().optional(), readonly: z.boolean() }),
  ),
});

export const importKeystoresAnswerSchema = z.object({
  data: z.array(z.object({ status: z.enum(['imported', 'duplicate', 'error']), message: z.string().exactOptional() })),
});

export const deleteKeystoresAnswerSchema = z.object({
  data: z.array(
    z.object({
      status: z.enum(['deleted', 'not_active', 'not_found', 'error']),
      message: z.string().exactOptional(),
    }),
  ),
  slashing_protection: z.string(),
});
