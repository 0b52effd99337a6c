// Reads a signing body that is too large for one turn of the main thread, or larger than max_request_body_bytes. The
// limit of 10 MiB is for envelopes only. Another message of that size is refused, as it is on every other path
// (specification/signing.md#gloas).

import { MAX_ENVELOPE_BODY_BYTES } from '../../api/limits.ts';
import type { ParsedSignRequest } from '../../api/sign-request.ts';
import type { EnvelopeReader } from '../../signing/envelopes/envelope-reader.ts';

export type ReadBody =
  | ParsedSignRequest
  | { readonly kind: 'refused'; readonly reason: 'body_too_large'; readonly hint: string };

export interface LargeBodyParts {
  readonly envelopes: Pick<EnvelopeReader, 'read'>;
  readonly maxRequestBodyBytes: number;
  readonly parse: (body: Uint8Array) => ParsedSignRequest;
}

const NO_ENVELOPE = {
  kind: 'refused',
  reason: 'body_too_large',
  hint: 'only EXECUTION_PAYLOAD_ENVELOPE may be of this size, and at most 10 MiB',
} as const;

/** @throws what EnvelopeReader.read throws */
export async function readLargeBody(
  body: Uint8Array,
  signal: AbortSignal,
  { envelopes, maxRequestBodyBytes, parse }: LargeBodyParts,
): Promise<ReadBody> {
  if (body.length > MAX_ENVELOPE_BODY_BYTES) {
    const parsed = parse(body); // max_request_body_bytes is larger than an envelope
    const isEnvelope = parsed.kind === 'request' && parsed.request.operation === 'EXECUTION_PAYLOAD_ENVELOPE';
    return isEnvelope ? NO_ENVELOPE : parsed;
  }
  const { length } = body;
  const read = await envelopes.read(body, signal);
  if (read.kind !== 'other') return read;
  return length > maxRequestBodyBytes ? NO_ENVELOPE : parse(read.body);
}
