// OpenAPI of the logs of receipts.

import { CREDENTIALS, type Operations, responses } from './operation.ts';

const PATH = '/api/v1/receipts';
const HEX_BOOT = { type: 'string', pattern: '^[0-9a-f]{32}$' } as const;
const BASE64 = { type: 'string', contentEncoding: 'base64' } as const;
const CHECKPOINT = { type: 'string', description: 'A C2SP checkpoint' } as const;
const common = { tags: ['receipts'], security: CREDENTIALS } as const;

export const RECEIPT_OPERATIONS: Operations = {
  [`GET ${PATH}/head`]: {
    ...common,
    summary: 'The latest head of the log of this start that is kept',
    response: responses({ 'text/plain': CHECKPOINT }, [401, 403, 404, 503]),
  },
  [`GET ${PATH}/boots`]: {
    ...common,
    summary: 'The starts whose logs the storage holds, those with the latest heads first',
    response: responses(
      {
        'application/json': {
          type: 'object',
          required: ['boot', 'boots'],
          properties: { boot: { ...HEX_BOOT, description: 'This start' }, boots: { type: 'array', items: HEX_BOOT } },
        },
      },
      [401, 403, 404, 503],
    ),
  },
  [`GET ${PATH}/tiles/:boot/*`]: {
    ...common,
    summary: 'A file of a log: identity, checkpoint, heads/N, tile/L/N, tile/entries/N (C2SP tlog-tiles)',
    response: responses(
      { 'application/octet-stream': { type: 'string', format: 'binary' } },
      [400, 401, 403, 404, 503],
    ),
  },
  [`GET ${PATH}/inclusion`]: {
    ...common,
    summary: 'An entry, and the proof that the latest kept head of its log covers it (RFC 9162 §2.1.3)',
    querystring: {
      type: 'object',
      required: ['index'],
      properties: {
        index: { type: 'string', pattern: '^(?:0|[1-9][0-9]{0,14})$', description: 'Number of the entry, from 0 on' },
        boot: { ...HEX_BOOT, description: 'Of another start' },
      },
    },
    response: responses(
      {
        'application/json': {
          type: 'object',
          required: ['boot', 'index', 'entry', 'proof', 'head'],
          properties: {
            boot: HEX_BOOT,
            index: { type: 'integer' },
            entry: BASE64,
            proof: { type: 'array', items: BASE64 },
            head: CHECKPOINT,
          },
        },
      },
      [400, 401, 403, 404, 503],
    ),
  },
};
