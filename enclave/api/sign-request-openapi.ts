// What the OpenAPI document says of signing requests: one schema for each `type`, under the name that stands on the
// wire (specification/signing.md#bodies). The schemas are those of the parser (sign-request.ts). They say nothing of
// their names, because the parser reads `type` first. Here each gets its name, so that a request fits exactly one.

import { z } from 'zod';
import { inputJsonSchema, publicKey } from './primitives.ts';
import { BATCH_OPERATIONS } from './sign-batch.ts';
import { SIGN_REQUEST_SCHEMAS, type WireType } from './sign-request.ts';

type JsonSchema = Record<string, unknown>;
type ObjectSchema = JsonSchema & { readonly properties: JsonSchema };

const WIRE_TYPES = Object.keys(SIGN_REQUEST_SCHEMAS) as WireType[];

/** Members that every type has. The others are names of its message. */
const COMMON_MEMBERS: ReadonlySet<string> = new Set(['type', 'signingRoot', 'signing_root', 'fork_info']);

/** The body of `POST /api/v1/eth2/sign/{identifier}`. */
export function signRequestJsonSchema(): JsonSchema {
  return oneOfTypes(WIRE_TYPES);
}

/** The body of `POST /api/v1/eth2/sign`: the types of the operations that a batch takes, under all their names. */
export function signBatchJsonSchema(): JsonSchema {
  const schemas = new Set<unknown>(BATCH_OPERATIONS.map((operation) => SIGN_REQUEST_SCHEMAS[operation]));
  const types = WIRE_TYPES.filter((type) => schemas.has(SIGN_REQUEST_SCHEMAS[type]));
  const identifiers = z.array(publicKey).min(1).meta({ description: 'public keys, each once' });
  return {
    type: 'object',
    properties: { identifiers: inputJsonSchema(identifiers), signing_request: oneOfTypes(types) },
    required: ['identifiers', 'signing_request'],
  };
}

function oneOfTypes(types: readonly WireType[]): JsonSchema {
  return { oneOf: types.map(namedSchema) };
}

function namedSchema(type: WireType): JsonSchema {
  const { properties, ...rest } = inputJsonSchema(SIGN_REQUEST_SCHEMAS[type]) as ObjectSchema;
  const names = Object.keys(properties).filter((member) => !COMMON_MEMBERS.has(member));
  const isOneOfSeveral = names.length > 1;
  return {
    title: type,
    ...rest,
    properties: { ...properties, type: typeSchema(type) },
    ...(isOneOfSeveral ? { oneOf: names.map((name) => ({ required: [name] })) } : {}),
  };
}

function typeSchema(type: WireType): JsonSchema {
  const anyCase = type.replace(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);
  return { type: 'string', pattern: `^${anyCase}$`, description: `${type}, in any case`, examples: [type] };
}
