// The Key Manager API of ethereum/keymanager-APIs: the shapes of GET, POST and DELETE /eth/v1/keystores. Members that
// we do not know are ignored, as with every API that others defined.

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
