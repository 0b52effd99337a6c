// Execution payload envelopes are the only large bodies (specification/signing.md#gloas).

import { type ErrorReason, SignerError } from '../api/errors.ts';
import { MAX_ENVELOPE_BODY_BYTES } from '../api/primitives.ts';
import { evaluateBeforeBody } from '../auth/evaluate.ts';
import type { ParsedSignRequest } from '../operations/sign-request.ts';
import { type EnvelopeReader, MAX_BODY_READ_AT_ONCE_BYTES } from '../sign/envelopes/envelope-reader.ts';
import type { HttpRequest, RequestContext, RouteAccess } from './context.ts';

export function largestEnvelope(access: RouteAccess | undefined): number {
  const signsWithOneKey = access?.kind === 'scope' && access.scope === 'sign' && access.namesKey;
  return signsWithOneKey ? MAX_ENVELOPE_BODY_BYTES : 0;
}

/** Which envelope it is, if any, is known when the body is here (routes/sign.ts). */
export function largestEnvelopeOf({ access, caller, publicKey }: RequestContext): number {
  if (caller === undefined || publicKey === undefined) return 0;
  const envelope = { scope: 'sign', publicKey, operation: 'EXECUTION_PAYLOAD_ENVELOPE' } as const;
  return evaluateBeforeBody(caller.access, envelope).allowed ? largestEnvelope(access) : 0;
}

type ReadBody =
  | ParsedSignRequest
  | { readonly kind: 'refused'; readonly reason: 'body_too_large'; readonly hint: string };

export interface LargeBodyParts {
  readonly envelopes: Pick<EnvelopeReader, 'read'>;
  readonly maxRequestBodyBytes: number;
  readonly parse: (body: Uint8Array) => ParsedSignRequest;
  readonly readmit: (request: HttpRequest) => ErrorReason | undefined;
}

interface LargeBodies {
  /** Longer bodies take too long for one turn of the main thread, or are larger than max_request_body_bytes. */
  readonly largestReadAtOnce: number;
  read(request: HttpRequest, body: Uint8Array, signal: AbortSignal): Promise<ReadBody>;
}

const NO_ENVELOPE = {
  kind: 'refused',
  reason: 'body_too_large',
  hint: 'only EXECUTION_PAYLOAD_ENVELOPE may be of this size, and at most 10 MiB',
} as const;

export function largeBodies(parts: LargeBodyParts): LargeBodies {
  return {
    largestReadAtOnce: Math.min(MAX_BODY_READ_AT_ONCE_BYTES, parts.maxRequestBodyBytes),
    async read(request, body, signal) {
      const read = await readLargeBody(body, { signal, caller: request.context.caller?.accessor }, parts);
      const revoked = parts.readmit(request);
      if (revoked !== undefined) throw new SignerError(revoked);
      return read;
    },
  };
}

async function readLargeBody(
  body: Uint8Array,
  { signal, caller }: { readonly signal: AbortSignal; readonly caller: string | undefined },
  { envelopes, maxRequestBodyBytes, parse }: LargeBodyParts,
): Promise<ReadBody> {
  if (body.length > MAX_ENVELOPE_BODY_BYTES) {
    const parsed = parse(body); // max_request_body_bytes is larger than an envelope
    const isEnvelope = parsed.kind === 'request' && parsed.request.operation === 'EXECUTION_PAYLOAD_ENVELOPE';
    return isEnvelope ? NO_ENVELOPE : parsed;
  }
  const { length } = body;
  const read = await envelopes.read(body, signal, caller);
  if (read.kind !== 'other') return read;
  return length > maxRequestBodyBytes ? NO_ENVELOPE : parse(read.body);
}
