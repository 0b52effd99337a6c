// OpenAPI of the slashing protection records.

import { z } from 'zod';
import { slashingImportAnswerSchema } from '../../api/slashing-protection.ts';
import { CREDENTIALS, responses } from '../openapi.ts';

const INTERCHANGE = { type: 'object', description: 'EIP-3076 interchange, version 5' } as const;

export const slashingExportRouteSchema = {
  summary: 'Export the slashing protection records of the keys that the caller may see',
  tags: ['slashing protection'],
  security: CREDENTIALS,
  querystring: {
    type: 'object',
    properties: { pubkeys: { type: 'string', description: 'Public keys, separated by commas; all when left out' } },
  },
  response: responses({ 'application/json': INTERCHANGE }, [400, 401, 403, 503]),
};

export const slashingImportRouteSchema = {
  summary: 'Merge slashing protection records: all or nothing, never weakening what is there',
  description:
    'Import before the keys are loaded: while a file is merged its keys, and with sqlite all keys, are answered 503. ' +
    'A file that may not list all that was signed since these records were last used is merged with ' +
    '`strongroom slashing import --as-minimal`.',
  tags: ['slashing protection'],
  security: CREDENTIALS,
  body: INTERCHANGE,
  response: responses({ 'application/json': z.toJSONSchema(slashingImportAnswerSchema) }, [400, 401, 403, 413, 503]),
};
