// The common part of the key routes of both APIs.

import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { SignerError } from '../../api/errors.ts';
import type { Scope } from '../../api/operations.ts';
import { evaluate } from '../../auth/evaluate.ts';
import { readJsonBody } from '../bodies/json.ts';
import { callerOf, isAllowed } from '../context.ts';

export function keyRequestBody<Schema extends z.ZodType>(request: FastifyRequest, schema: Schema): z.output<Schema> {
  return readJsonBody(request, schema, { mismatch: 'malformed_body' });
}

/** For a body that holds passwords: its bytes are wiped. */
export function secretRequestBody<Schema extends z.ZodType>(request: FastifyRequest, schema: Schema): z.output<Schema> {
  try {
    return keyRequestBody(request, schema);
  } finally {
    if (request.body instanceof Uint8Array) request.body.fill(0);
  }
}

export function said({ message }: { readonly message?: string }): { message?: string } {
  return message === undefined ? {} : { message };
}

export function allowsKey(request: FastifyRequest, scope: Scope): (publicKey: string) => boolean {
  const { access } = callerOf(request);
  return (publicKey) => isAllowed(request, evaluate(access, { scope, publicKey }));
}

/** @throws SignerError `denied` for the whole batch (specification/authorization.md#routes-without-keys) */
export function assertKeysAllowed(request: FastifyRequest, scope: Scope, publicKeys: readonly string[]): void {
  if (!publicKeys.every(allowsKey(request, scope))) {
    throw new SignerError('denied', { hint: `the scope ${scope} is needed on every key that is named` });
  }
}
