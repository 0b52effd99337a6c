// OpenAPI of the chamber, its slashing protection records, its evidence, and the reload.

import { z } from 'zod';
import { CLIENT_NONCE_BYTES, DOCUMENT_MEDIA_TYPE, EXPORTER_LABEL } from '../../common/attestation/contract.ts';
import { chamberStatusSchema, sealAnswerSchema } from '../../signer/api/chamber.ts';
import { reloadAnswerSchema, reloadStatusSchema } from '../../signer/api/reload.ts';
import { sealRequestSchema } from '../../signer/api/seal.ts';
import { slashingImportAnswerSchema } from '../../signer/api/slashing-protection.ts';
import { CREDENTIALS, type Operations, responses } from './operation.ts';

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
