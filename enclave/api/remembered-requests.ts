// Bodies that come again: the attesters of a slot that agree send the same bytes, each for a key of its own. What those bytes say is
// worked out once. Two bodies are the same only when all their bytes are; the digest merely says where to look. Refusals are not
// remembered, long bodies neither. A body holds no secret.

import { type ParsedSignRequest, parseSignRequest, type SignRequest } from './sign-request.ts';

/** A slot has some ten kinds of message; before Electra the votes of each of its 64 committees differ. */
export const MAX_REMEMBERED_BODIES = 128;
/** A vote has about 700 bytes, the contribution of a sync committee 1,500. */
export const MAX_REMEMBERED_BODY_BYTES = 2048;

/** A prime, so that the bytes looked at are not always the same digit of some number. */
const DIGEST_STEP = 3;
const DIGEST_FACTOR = 0x01000193;

/** parseSignRequest that gives equal bodies one request. It is shared: nobody writes to it. */
export function rememberedRequests(): (body: Uint8Array) => ParsedSignRequest {
  const digests = new Int32Array(MAX_REMEMBERED_BODIES);
  const known: { readonly body: Uint8Array; readonly request: SignRequest }[] = [];
  let oldest = 0;
  return (body) => {
    if (body.length > MAX_REMEMBERED_BODY_BYTES) return parseSignRequest(body);
    const digest = digestOf(body);
    for (let at = digests.indexOf(digest); at !== -1; at = digests.indexOf(digest, at + 1)) {
      const entry = known[at];
      if (entry !== undefined && Buffer.compare(entry.body, body) === 0)
        return { kind: 'request', request: entry.request };
    }
    const parsed = parseSignRequest(body);
    if (parsed.kind === 'request') {
      digests[oldest] = digest;
      known[oldest] = { body: new Uint8Array(body), request: parsed.request };
      oldest = (oldest + 1) % MAX_REMEMBERED_BODIES;
    }
    return parsed;
  };
}

function digestOf(body: Uint8Array): number {
  let digest = body.length;
  for (let at = 0; at < body.length; at += DIGEST_STEP) digest = Math.imul(digest ^ (body[at] ?? 0), DIGEST_FACTOR);
  return digest;
}
