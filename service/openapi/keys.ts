// OpenAPI of the key routes: the Key Manager API and the chamber's.

import { z } from 'zod';
import { CLIENT_NONCE_BYTES, DOCUMENT_MEDIA_TYPE, EXPORTER_LABEL } from '../../common/attestation/contract.ts';
import { chamberStatusSchema, sealAnswerSchema } from '../../signer/api/chamber.ts';
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
import { reloadAnswerSchema, reloadStatusSchema } from '../../signer/api/reload.ts';
import { sealRequestSchema } from '../../signer/api/seal.ts';
import { slashingImportAnswerSchema } from '../../signer/api/slashing-protection.ts';
import { CREDENTIALS, type Operations, responses, written } from './operation.ts';

// OpenAPI of the chamber, its slashing protection records, its evidence, and the reload.

const INTERCHANGE = { type: 'object', description: 'EIP-3076 interchange, version 5' } as const;
const { min, max } = CLIENT_NONCE_BYTES;
const { 200: accepted, ...refusals } = responses(
  { 'application/json': z.toJSONSchema(reloadAnswerSchema) },
  [401, 403, 409],
);

export const CHAMBER_OPERATIONS: Operations = {
  'GET /api/v1/chamber/slashing-protection': {
    summary: 'Export the slashing protection records of the keys that the caller may see',
    tags: ['slashing protection'],
    security: CREDENTIALS,
    querystring: {
      type: 'object',
      properties: { pubkeys: { type: 'string', description: 'Public keys, separated by commas; all when left out' } },
    },
    response: responses({ 'application/json': INTERCHANGE }, [400, 401, 403, 503]),
  },
  'POST /api/v1/chamber/slashing-protection': {
    summary: 'Merge slashing protection records, never weakening what is there',
    description:
      'Import before the keys are loaded. A file that is wrong is refused as a whole; a merge that a fault interrupted is ' +
      'repeated, and was never weaker. ' +
      'A file that may not list all that was signed since these records were last used is merged with ' +
      '`strongroom slashing import --as-minimal`.',
    tags: ['slashing protection'],
    security: CREDENTIALS,
    querystring: {
      type: 'object',
      properties: {
        accept_future: {
          type: 'string',
          enum: ['true'],
          description: 'Take entries ahead of the clock, too: their keys sign no blocks, or no votes, until then',
        },
      },
    },
    body: INTERCHANGE,
    response: responses({ 'application/json': z.toJSONSchema(slashingImportAnswerSchema) }, [400, 401, 403, 413, 503]),
  },
  'GET /api/v1/chamber/status': {
    summary: 'The state of this replica, its custody keys and what it depends on',
    tags: ['chamber'],
    security: CREDENTIALS,
    response: responses({ 'application/json': z.toJSONSchema(chamberStatusSchema) }, [401, 403]),
  },
  'POST /api/v1/chamber/seal': {
    summary: 'Break-glass: seal every replica, until the latch is deleted and each is restarted',
    tags: ['chamber'],
    security: CREDENTIALS,
    body: z.toJSONSchema(sealRequestSchema, { io: 'input' }),
    response: responses({ 'application/json': z.toJSONSchema(sealAnswerSchema) }, [400, 401, 403, 413, 503]),
  },
  'GET /reload': {
    summary: 'How the last reload ended',
    tags: ['reload'],
    security: CREDENTIALS,
    response: responses({ 'application/json': z.toJSONSchema(reloadStatusSchema) }, [401, 403]),
  },
  'POST /reload': {
    summary: 'Read key folders, static tokens, known clients and TLS files again, in the background',
    tags: ['reload'],
    security: CREDENTIALS,
    response: { 202: accepted, ...refusals },
  },
  'GET /api/v1/attestation': {
    summary: 'A fresh attestation document for this connection; on the RA-TLS listener only',
    description:
      'The nonce of the document is SHA-256(nonce || TLS exporter of 32 bytes under the label ' +
      `"${EXPORTER_LABEL}", without a context); its user_data binds the key of the certificate that this ` +
      'connection was served with. Two are made at a time, in turns by address; others wait, at most 10 s, then the answer is 503 with ' +
      'Retry-After. A connection gets four.',
    tags: ['attestation'],
    querystring: {
      type: 'object',
      required: ['nonce'],
      properties: {
        nonce: {
          type: 'string',
          pattern: `^([0-9a-fA-F]{2}){${min},${max}}$`,
          description: `Chosen by the client, ${min} to ${max} bytes, hex`,
        },
      },
    },
    response: responses(
      { [DOCUMENT_MEDIA_TYPE]: { type: 'string', format: 'binary', description: 'COSE_Sign1, as the NSM made it' } },
      [400, 404, 503],
    ),
  },
};

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
