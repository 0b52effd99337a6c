// A JSON body as a typed value, or a refusal that says which member is wrong. Strict: what another parser on the way
// may have read differently is refused (api/strict-json.ts), and so is every member that the schema does not know.

import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { parseStrictJson } from '../../../formats/strict-json.ts';
import type { ErrorReason } from '../../api/errors.ts';
import { explainIssue } from '../../api/issues.ts';

export type JsonBody<Value> =
  | { readonly kind: 'body'; readonly value: Value }
  | { readonly kind: 'refused'; readonly reason: ErrorReason; readonly hint: string };

export interface JsonBodyOptions {
  /** The reason when a body is JSON and does not match the schema. */
  readonly mismatch: ErrorReason;
  /** What no body at all stands for; without it that is refused. */
  readonly whenEmpty?: unknown;
}

export function readJsonBody<Schema extends z.ZodType>(
  { body }: Pick<FastifyRequest, 'body'>,
  schema: Schema,
  { mismatch, whenEmpty }: JsonBodyOptions,
): JsonBody<z.output<Schema>> {
  const bytes = body instanceof Uint8Array ? body : new Uint8Array();
  const json =
    bytes.length === 0 && whenEmpty !== undefined
      ? ({ kind: 'json', value: whenEmpty } as const)
      : parseStrictJson(bytes);
  if (json.kind === 'refused') return { kind: 'refused', reason: 'malformed_body', hint: json.hint };
  const result = schema.safeParse(json.value, { error: explainIssue });
  if (result.success) return { kind: 'body', value: result.data };
  return { kind: 'refused', reason: mismatch, hint: firstProblem(result.error) };
}

/** `rules[0].scopes[1]: unknown scope "sing"`. */
function firstProblem({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined) return 'the body does not match its schema';
  const place = issue.path.reduce<string>(
    (path, step) => (typeof step === 'number' ? `${path}[${step}]` : `${path}.${String(step)}`),
    '',
  );
  return place === '' ? issue.message : `${place.replace(/^\./, '')}: ${issue.message}`;
}
