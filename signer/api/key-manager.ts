// The Key Manager API of ethereum/keymanager-APIs. Members that we do not know are ignored.

import { z } from 'zod';
import { publicKeySchema } from './policy.ts';

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

export const deleteKeystoresSchema = z.object({ pubkeys: z.array(publicKeySchema).default([]) });
