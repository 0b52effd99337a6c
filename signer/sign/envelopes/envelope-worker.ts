// The thread that reads large signing bodies: the main thread gets only the root of an envelope. Nothing here is
// secret.

import assert from 'node:assert/strict';
import { parentPort } from 'node:worker_threads';
import { parseStrictJson } from '../../../common/formats/strict-json.ts';
import { envelopeRoot } from '../../operations/object-roots.ts';
import { readRequest } from '../../operations/parse.ts';
import { isEnvelopeRequest, type ParsedSignRequest } from '../../operations/sign-request.ts';

export interface EnvelopeJob {
  readonly body: Uint8Array<ArrayBuffer>;
}

export type EnvelopeAnswer = ParsedSignRequest | { readonly kind: 'other'; readonly body: Uint8Array<ArrayBuffer> };

/** 8,192 deposits of a payload have six values each; no payload has so many transactions. */
const MAX_ENVELOPE_VALUES = 200_000;

const port = parentPort;
assert(port !== null, 'envelope-worker.ts runs as a worker thread');

port.on('message', ({ body }: EnvelopeJob) => {
  const answer = readEnvelope(body);
  port.postMessage(answer, answer.kind === 'other' ? [answer.body.buffer] : []);
});

function readEnvelope(body: Uint8Array<ArrayBuffer>): EnvelopeAnswer {
  const json = parseStrictJson(body, MAX_ENVELOPE_VALUES);
  if (json.kind === 'refused' || !isEnvelopeRequest(json.value)) return { kind: 'other', body };
  const parsed = readRequest(json.value);
  if (parsed.kind === 'refused') return parsed;
  const { request } = parsed;
  assert(request.operation === 'EXECUTION_PAYLOAD_ENVELOPE');
  // The rest of the message is small, and what rules are held to.
  const content = { kind: 'root', root: envelopeRoot(request.message) } as const;
  return { kind: 'request', request: { ...request, message: { ...request.message, content } } };
}
