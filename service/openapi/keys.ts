// OpenAPI of the key routes: the Key Manager API and the chamber's.

import type { z } from 'zod';
import {
  deleteKeystoresAnswerSchema,
  importKeystoresAnswerSchema,
  keyBackupsAnswerSchema,
  keyDeleteAnswerSchema,
  keyDepositDataAnswerSchema,
  keyGenerateAnswerSchema,
  keyGenerateBlsAnswerSchema,
  keyImportAnswerSchema,
  keyListSchema,
  keyPatchAnswerSchema,
  keystoreListSchema,
} from '../../signer/api/key-answers.ts';
import { deleteKeystoresSchema, importKeystoresSchema } from '../../signer/api/key-manager.ts';
import {
  keyBackupsSchema,
  keyDeleteSchema,
  keyDepositDataSchema,
  keyGenerateBlsSchema,
  keyGenerateSchema,
  keyImportSchema,
  keyListQuerySchema,
  keyPatchSchema,
} from '../../signer/api/keys.ts';
import { CREDENTIALS, type Operations, responses, written } from './operation.ts';

const KEY_MANAGER = 'key manager';
const CHAMBER_KEYS = 'chamber keys';
const REFUSALS = [400, 401, 403, 503];
const BODY_REFUSALS = [400, 401, 403, 413, 503];

export const KEY_OPERATIONS: Operations = {
  'GET /eth/v1/keystores': route(
    KEY_MANAGER,
    'The loaded keys that the caller may see',
    keystoreListSchema,
    [401, 403, 503],
  ),
  'POST /eth/v1/keystores': {
    ...route(KEY_MANAGER, 'Import keystores into memory', importKeystoresAnswerSchema, BODY_REFUSALS),
    body: written(importKeystoresSchema),
  },
  'DELETE /eth/v1/keystores': {
    ...route(
      KEY_MANAGER,
      'Delete keys from memory and export their slashing protection records',
      deleteKeystoresAnswerSchema,
      BODY_REFUSALS,
    ),
    body: written(deleteKeystoresSchema),
  },
  'GET /api/v1/chamber/keys': {
    ...route(CHAMBER_KEYS, 'The inventory of keys, in pages', keyListSchema, REFUSALS),
    querystring: written(keyListQuerySchema),
  },
  'POST /api/v1/chamber/keys': {
    ...route(CHAMBER_KEYS, 'Import keystores, into memory or the key table', keyImportAnswerSchema, BODY_REFUSALS),
    body: written(keyImportSchema),
  },
  'PATCH /api/v1/chamber/keys': {
    ...route(CHAMBER_KEYS, 'Activate or deactivate keys of the key table', keyPatchAnswerSchema, BODY_REFUSALS),
    body: written(keyPatchSchema),
  },
  'DELETE /api/v1/chamber/keys': {
    ...route(
      CHAMBER_KEYS,
      'Delete keys and export their slashing protection records',
      keyDeleteAnswerSchema,
      BODY_REFUSALS,
    ),
    body: written(keyDeleteSchema),
  },
  'POST /api/v1/chamber/keys/generate': {
    ...created('Generate keys into the key table, with deposit data', keyGenerateAnswerSchema),
    body: written(keyGenerateSchema),
  },
  'POST /api/v1/chamber/keys/generate-keys': {
    ...created('Generate keys into the key table', keyGenerateBlsAnswerSchema),
    body: written(keyGenerateBlsSchema),
  },
  'POST /api/v1/chamber/keys/backups': {
    ...route(CHAMBER_KEYS, 'Encrypted backups of keys of the key table', keyBackupsAnswerSchema, BODY_REFUSALS),
    body: written(keyBackupsSchema),
  },
  'POST /api/v1/chamber/keys/deposit-data': {
    ...route(CHAMBER_KEYS, 'Deposit data of keys of the key table', keyDepositDataAnswerSchema, BODY_REFUSALS),
    body: written(keyDepositDataSchema),
  },
};

function route(tag: string, summary: string, answer: z.ZodType, refusals: readonly number[]) {
  const response = responses({ 'application/json': written(answer) }, refusals);
  return { summary, tags: [tag], security: CREDENTIALS, response };
}

function created(summary: string, answer: z.ZodType) {
  const { 200: ok, ...refused } = responses({ 'application/json': written(answer) }, BODY_REFUSALS);
  return { summary, tags: [CHAMBER_KEYS], security: CREDENTIALS, response: { 201: ok, ...refused } };
}
