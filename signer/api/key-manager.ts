// The Key Manager API of ethereum/keymanager-APIs. Members that we do not know are ignored, but a record under the name
// that Lodestar gave it until 2022: its keys would be imported without it.

import { z } from 'zod';
import { publicKeySchema } from './policy.ts';

export const importKeystoresSchema = z
  .object({
    keystores: z.array(z.string()).default([]),
    passwords: z.array(z.string()).default([]),
    slashing_protection: z.string().nullish(),
    slashingProtection: z.never({ error: 'the record belongs into slashing_protection' }).optional(),
  })
  .refine(({ keystores, passwords }) => keystores.length === passwords.length, {
    path: ['passwords'],
    message: 'one password for each keystore',
  });

export const deleteKeystoresSchema = z.object({ pubkeys: z.array(publicKeySchema).default([]) });
