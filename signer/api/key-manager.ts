// The Key Manager API of ethereum/keymanager-APIs: the shapes of GET, POST and DELETE /eth/v1/keystores. Members that
// we do not know are ignored, as with every API that others defined.

import { z } from 'zod';
import { publicKeySchema } from './policy.ts';

export const keystoreListSchema = z.object({
  data: z.array(z.object({ validating_pubkey: publicKeySchema, readonly: z.boolean() })),
});

export const importKeystoresSchema = z
  .object({
    keystores: z.array(z.string()).default([]),
    passwords: z.array(z.string()).default([]),
    slashing_protection: z.string().nullish(),
  })
  .refine(({ keystores, passwords }) => keystores.length === passwords.length, {
    path: ['passwords'],
    message: 'one password for each keystore',
  });

export const importKeystoresAnswerSchema = z.object({
  data: z.array(z.object({ status: z.enum(['imported', 'duplicate', 'error']), message: z.string().exactOptional() })),
});

export const deleteKeystoresSchema = z.object({ pubkeys: z.array(publicKeySchema).default([]) });

export const deleteKeystoresAnswerSchema = z.object({
  data: z.array(
    z.object({
      status: z.enum(['deleted', 'not_active', 'not_found', 'error']),
      message: z.string().exactOptional(),
    }),
  ),
  slashing_protection: z.string(),
});
