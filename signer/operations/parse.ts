// The one parser of signing requests, for all clients: from bytes to a typed request. A plain vote is read without its
// schema, and bytes that come again are neither parsed nor hashed again.

import { parseStrictJson } from '../../common/formats/strict-json.ts';
import { type ParsedSignRequest, readSignRequest, type SignRequest } from './sign-request.ts';
import { readPlainAttestation } from './vote.ts';

export function parseSignRequest(body: Uint8Array): ParsedSignRequest {
  const json = parseStrictJson(body);
  return json.kind === 'refused' ? malformed(json.hint) : readRequest(json.value);
}

export function readRequest(value: unknown): ParsedSignRequest {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return malformed('the body is not a JSON object');
  }
  const vote = readPlainAttestation(value);
  if (vote !== undefined) return { kind: 'request', request: vote };
  const type = 'type' in value ? value.type : undefined;
  if (typeof type !== 'string') return malformed(`type: ${type === undefined ? 'is missing' : 'expected a string'}`);
  return readSignRequest(value, type);
}

function malformed(hint: string): ParsedSignRequest {
  return { kind: 'refused', reason: 'malformed_body', hint };
}

// The attesters of a slot that agree send the same bytes, each for their own key.

export const MAX_REMEMBERED_BODIES = 128;
export const MAX_REMEMBERED_BODY_BYTES = 2048;

const DIGEST_STEP = 3;
const DIGEST_FACTOR = 0x01000193;

/** What both return is shared between requests: callers must not write to it. */
interface RememberedRequests<Fork> {
  readonly parse: (body: Uint8Array) => ParsedSignRequest;
  readonly rootOf: (request: SignRequest, fork?: Fork) => Uint8Array;
}

export function rememberedRequests<Fork>(
  computeRoot: (request: SignRequest, fork?: Fork) => Uint8Array,
): RememberedRequests<Fork> {
  const digests = new Int32Array(MAX_REMEMBERED_BODIES);
  const bodies: Uint8Array[] = [];
  const requests: SignRequest[] = [];
  const roots: (Uint8Array | undefined)[] = [];
  let oldest = 0;

  function find(body: Uint8Array, digest: number): SignRequest | undefined {
    for (let at = digests.indexOf(digest); at !== -1; at = digests.indexOf(digest, at + 1)) {
      const known = bodies[at];
      if (known !== undefined && Buffer.compare(known, body) === 0) return requests[at];
    }
    return undefined;
  }

  return {
    parse(body) {
      if (body.length > MAX_REMEMBERED_BODY_BYTES) return parseSignRequest(body);
      const digest = digestOf(body);
      const known = find(body, digest);
      if (known !== undefined) return { kind: 'request', request: known };
      const parsed = parseSignRequest(body);
      if (parsed.kind === 'refused') return parsed;
      digests[oldest] = digest;
      bodies[oldest] = new Uint8Array(body);
      requests[oldest] = parsed.request;
      roots[oldest] = undefined;
      oldest = (oldest + 1) % MAX_REMEMBERED_BODIES;
      return parsed;
    },
    rootOf(request, fork) {
      const at = requests.indexOf(request); // by identity: a root is never taken for that of another request
      const root = roots[at] ?? computeRoot(request, fork);
      if (at !== -1) roots[at] = root;
      return root;
    },
  };
}

function digestOf(body: Uint8Array): number {
  let digest = body.length;
  for (let at = 0; at < body.length; at += DIGEST_STEP) digest = Math.imul(digest ^ (body[at] ?? 0), DIGEST_FACTOR);
  return digest;
}
