// OpenAPI of the key routes: the Key Manager API and the chamber's.

import { z } from 'zod';
import {
  deleteKeystoresAnswerSchema,
  deleteKeystoresSchema,
  importKeystoresAnswerSchema,
  importKeystoresSchema,
  keystoreListSchema,
} from '../../api/key-manager.ts';
import {
  keyDeleteAnswerSchema,
  keyDeleteSchema,
  keyDepositDataAnswerSchema,
  keyDepositDataSchema,
  keyGenerateAnswerSchema,
  keyGenerateBlsAnswerSchema,
  keyGenerateBlsSchema,
  keyGenerateSchema,
  keyImportAnswerSchema,
  keyImportSchema,
  keyListQuerySchema,
  keyListSchema,
  keyPatchAnswerSchema,
  keyPatchSchema,
} from '../../api/keys.ts';
import { CREDENTIALS, responses } from '../openapi.ts';

const KEY_MANAGER = 'key manager';
const CHAMBER_KEYS = 'chamber keys';
const REFUSALS = [400, 401, 403, 503];
const BODY_REFUSALS = [400, 401, 403, 413, 503];

export const listKeystores = route(
  KEY_MANAGER,
  'The loaded keys that the caller may see',
  keystoreListSchema,
  [401, 403, 503],
);
export const importKeystores = {
  ...route(KEY_MANAGER, 'Import keystores into memory', importKeystoresAnswerSchema, BODY_REFUSALS),
  body: input(importKeystoresSchema),
};
export const deleteKeystores = {
  ...route(
    KEY_MANAGER,
    'Delete keys from memory and export their slashing protection records',
    deleteKeystoresAnswerSchema,
    BODY_REFUSALS,
  ),
  body: input(deleteKeystoresSchema),
};

export const listChamberKeys = {
  ...route(CHAMBER_KEYS, 'The inventory of keys, in pages', keyListSchema, REFUSALS),
  querystring: input(keyListQuerySchema),
};
export const importChamberKeys = {
  ...route(CHAMBER_KEYS, 'Import keystores, into memory or the key table', keyImportAnswerSchema, BODY_REFUSALS),
  body: input(keyImportSchema),
};
export const patchChamberKeys = {
  ...route(CHAMBER_KEYS, 'Activate or deactivate keys of the key table', keyPatchAnswerSchema, BODY_REFUSALS),
  body: input(keyPatchSchema),
};
export const deleteChamberKeys = {
  ...route(
    CHAMBER_KEYS,
    'Delete keys and export their slashing protection records',
    keyDeleteAnswerSchema,
    BODY_REFUSALS,
  ),
  body: input(keyDeleteSchema),
};

export const generateChamberKeys = {
  ...created('Generate keys into the key table, with deposit data', keyGenerateAnswerSchema),
  body: input(keyGenerateSchema),
};
export const generateBlsChamberKeys = {
  ...created('Generate keys into the key table', keyGenerateBlsAnswerSchema),
  body: input(keyGenerateBlsSchema),
};
export const depositDataChamberKeys = {
  ...route(CHAMBER_KEYS, 'Deposit data of keys of the key table', keyDepositDataAnswerSchema, BODY_REFUSALS),
  body: input(keyDepositDataSchema),
};

function route(tag: string, summary: string, answer: z.ZodType, refusals: readonly number[]) {
  const response = responses({ 'application/json': input(answer) }, refusals);
  return { summary, tags: [tag], security: CREDENTIALS, response };
}

function created(summary: string, answer: z.ZodType) {
  const { 200: ok, ...refused } = responses({ 'application/json': input(answer) }, BODY_REFUSALS);
  return { summary, tags: [CHAMBER_KEYS], security: CREDENTIALS, response: { 201: ok, ...refused } };
}

/** As it is written: a public key has one spelling by then. */
function input(schema: z.ZodType): object {
  return z.toJSONSchema(schema, { io: 'input' });
}
