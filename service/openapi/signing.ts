// OpenAPI of probes and signing.

import { z } from 'zod';
import { accountSchema } from '../../signer/api/distributed.ts';
import { healthSchema } from '../../signer/api/health.ts';
import { inputJsonSchema, publicKey } from '../../signer/api/primitives.ts';
import type { OperationRow } from '../../signer/operations/row.ts';
import { ROWS } from '../../signer/operations/rows.ts';
import { SIGN_REQUEST_SCHEMAS } from '../../signer/operations/sign-request.ts';
import { CREDENTIALS, ERROR_BODY, type Operations, responses } from './operation.ts';

// The schemas of signing requests are those of the parser, which reads `type` first. Here each gets its name on the
// wire, so that a request fits exactly one (specification/signing.md#bodies).

type JsonSchema = Record<string, unknown>;
type ObjectSchema = JsonSchema & { readonly properties: JsonSchema };

const WIRE_TYPES = [...SIGN_REQUEST_SCHEMAS.keys()];

const COMMON_MEMBERS: ReadonlySet<string> = new Set([
  'type',
  'signingRoot',
  'signing_root',
  'genesis_fork_version',
  'fork_info',
]);

function signRequestJsonSchema(): JsonSchema {
  return oneOfTypes(WIRE_TYPES);
}

function signBatchJsonSchema(): JsonSchema {
  const types = Object.entries<OperationRow>(ROWS).flatMap(([operation, { isForBatches, otherTypes = [] }]) =>
    isForBatches === true ? [operation, ...otherTypes] : [],
  );
  const identifiers = z.array(publicKey).min(1).meta({ description: 'public keys, each once' });
  return {
    type: 'object',
    properties: { identifiers: inputJsonSchema(identifiers), signing_request: oneOfTypes(types) },
    required: ['identifiers', 'signing_request'],
  };
}

function oneOfTypes(types: readonly string[]): JsonSchema {
  return { oneOf: types.map(namedSchema) };
}

function namedSchema(type: string): JsonSchema {
  const { properties, ...rest } = inputJsonSchema(SIGN_REQUEST_SCHEMAS.get(type) ?? z.never()) as ObjectSchema;
  const names = Object.keys(properties).filter((member) => !COMMON_MEMBERS.has(member));
  const isOneOfSeveral = names.length > 1;
  return {
    title: type,
    ...rest,
    properties: { ...properties, type: typeSchema(type) },
    ...(isOneOfSeveral ? { oneOf: names.map((name) => ({ required: [name] })) } : {}),
  };
}

function typeSchema(type: string): JsonSchema {
  const anyCase = type.replace(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);
  return { type: 'string', pattern: `^${anyCase}$`, description: `${type}, in any case`, examples: [type] };
}

const PUBLIC_KEY = { type: 'string', pattern: '^(0[xX])?[0-9a-fA-F]{96}$' } as const;
const SIGNATURE = { type: 'string', pattern: '^0x[0-9a-f]{192}$', description: 'BLS signature, 96 bytes' } as const;

const KEY_ERROR = {
  type: 'object',
  required: ['code', 'reason', 'message'],
  properties: {
    code: { type: 'integer', description: 'What the route of one key would have answered: 403, 404, 409, 412 or 503' },
    reason: ERROR_BODY.properties.reason,
    message: { type: 'string' },
  },
} as const;

/** @param signed what a signature brings with it */
function keyResults(signed: JsonSchema): JsonSchema {
  const result = (members: JsonSchema) => {
    const properties = { identifier: PUBLIC_KEY, ...members };
    return { type: 'object', required: Object.keys(properties), properties };
  };
  return { type: 'array', items: { oneOf: [result(signed), result({ error: KEY_ERROR })] } };
}

const PARTIAL = {
  participant_id: { type: 'string' },
  signing_root: { type: 'string', pattern: '^0x[0-9a-f]{64}$' },
  signature: SIGNATURE,
} as const;
const ACCOUNT = inputJsonSchema(accountSchema);

const HEALTH_BODY = inputJsonSchema(healthSchema);

export const SIGN = {
  summary: 'Sign a validator message',
  tags: ['signing'],
  security: CREDENTIALS,
  params: { type: 'object', required: ['identifier'], properties: { identifier: PUBLIC_KEY } },
  body: signRequestJsonSchema(),
  response: responses(
    {
      'application/json': { type: 'object', required: ['signature'], properties: { signature: SIGNATURE } },
      'text/plain': SIGNATURE,
    },
    [400, 401, 403, 404, 409, 412, 413, 503],
  ),
};

export const SIGN_BATCH = {
  summary: 'Sign one validator message with many keys',
  description:
    'A result for each key, in the order of the identifiers. Remote Signing API, pull request 29: a draft, and versioned with it.',
  tags: ['signing'],
  security: CREDENTIALS,
  body: signBatchJsonSchema(),
  response: responses({ 'application/json': keyResults({ signature: SIGNATURE }) }, [400, 401, 403, 413, 503]),
};

const PARTIAL_ANSWER = { type: 'object', required: Object.keys(PARTIAL), properties: PARTIAL };

const SHARES: Operations = {
  'GET /api/v1/eth2/distributed/accounts': {
    summary: 'The keys of which this signer holds a share, as publicKeys lists whole ones',
    tags: ['signing'],
    security: CREDENTIALS,
    response: responses({ 'application/json': { type: 'array', items: ACCOUNT } }, [401, 403]),
  },
  'GET /api/v1/eth2/distributed/accounts/:identifier': {
    summary: 'One of them',
    tags: ['signing'],
    security: CREDENTIALS,
    params: SIGN.params,
    response: responses({ 'application/json': ACCOUNT }, [400, 401, 403, 404, 503]),
  },
  'POST /api/v1/eth2/distributed/sign/:identifier': {
    ...SIGN,
    summary: 'Sign a validator message with a share: a partial signature',
    response: responses({ 'application/json': PARTIAL_ANSWER }, [400, 401, 403, 404, 412, 413, 503]),
  },
  'POST /api/v1/eth2/distributed/sign': {
    ...SIGN_BATCH,
    summary: 'Sign one validator message with shares of many keys',
    response: responses({ 'application/json': keyResults(PARTIAL) }, [400, 401, 403, 413, 503]),
  },
};

export const SIGNING_OPERATIONS: Operations = {
  'GET /upcheck': {
    summary: 'Liveness: OK whatever the load or the state',
    tags: ['health'],
    response: responses({ 'text/plain': { type: 'string', enum: ['OK'] } }, []),
  },
  'GET /healthcheck': {
    summary: 'Readiness: whether the signer can safely sign',
    tags: ['health'],
    response: {
      200: { description: 'UP', content: { 'application/json': { schema: HEALTH_BODY } } },
      503: { description: 'DOWN', content: { 'application/json': { schema: HEALTH_BODY } } },
    },
  },
  'GET /api/v1/eth2/publicKeys': {
    summary:
      'The public keys that the caller can sign with, ascending. It waits while keys load; a refusal closes the connection',
    tags: ['signing'],
    security: CREDENTIALS,
    response: responses({ 'application/json': { type: 'array', items: PUBLIC_KEY } }, [401, 403]),
  },
  'GET /api/v1/eth2/highWatermark': {
    summary: 'As Web3Signer answers without a high watermark: this signer has none, and goes on beyond every epoch',
    tags: ['signing'],
    security: CREDENTIALS,
    response: responses({ 'application/json': { type: 'object', additionalProperties: false } }, [401, 403]),
  },
  'POST /api/v1/eth2/sign/:identifier': SIGN,
  'POST /api/v1/eth2/sign': SIGN_BATCH,
  ...SHARES,
};
