// A JSON body as a typed value (common/formats/strict-json.ts), without any member that the schema does not know.

import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { explainIssue } from '../../../common/formats/issues.ts';
import { parseStrictJson } from '../../../common/formats/strict-json.ts';
import { type ErrorReason, SignerError } from '../../api/errors.ts';

interface JsonBodyOptions {
  readonly mismatch: ErrorReason;
  /** What no body at all stands for; without it that is refused. */
  readonly whenEmpty?: unknown;
}

/** @throws SignerError `malformed_body` for what is no JSON, else `mismatch` */
export function readJsonBody<Schema extends z.ZodType>(
  { body }: Pick<FastifyRequest, 'body'>,
  schema: Schema,
  { mismatch, whenEmpty }: JsonBodyOptions,
): z.output<Schema> {
  const bytes = body instanceof Uint8Array ? body : new Uint8Array();
  const json =
    bytes.length === 0 && whenEmpty !== undefined
      ? ({ kind: 'json', value: whenEmpty } as const)
      : parseStrictJson(bytes);
  if (json.kind === 'refused') throw new SignerError('malformed_body', { hint: json.hint });
  const result = schema.safeParse(json.value, { error: explainIssue });
  if (result.success) return result.data;
  throw new SignerError(mismatch, { hint: firstProblem(result.error) });
}

function firstProblem({ issues }: z.ZodError): string {
  const [issue] = issues;
  if (issue === undefined) return 'the body does not match its schema';
  const place = issue.path.reduce<string>(
    (path, step) => (typeof step === 'number' ? `${path}[${step}]` : `${path}.${String(step)}`),
    '',
  );
  return place === '' ? issue.message : `${place.replace(/^\./, '')}: ${issue.message}`;
}
