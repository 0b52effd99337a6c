// Remembers bodies that come again. The attesters of a slot that agree send the same bytes, each for their own key. The
// signer parses these bytes and computes their signing root only once. Two bodies are the same only when all their
// bytes are equal; the digest only says where to look. Refusals are not remembered. Long bodies are not either, because
// a whole block does not come again. A body contains no secret.

import { type ParsedSignRequest, parseSignRequest, type SignRequest } from '../api/sign-request.ts';
import type { Network } from './networks.ts';
import { rememberedDomains } from './roots/domains.ts';
import { computeSigningRoot } from './roots/root.ts';

/** A slot has some ten kinds of message; before Electra the votes of each of its 64 committees differ. */
export const MAX_REMEMBERED_BODIES = 128;
/** A vote has about 700 bytes, the contribution of a sync committee 1,500. */
export const MAX_REMEMBERED_BODY_BYTES = 2048;

/** A prime, so that the bytes looked at are not always the same digit of some number. */
const DIGEST_STEP = 3;
const DIGEST_FACTOR = 0x01000193;

export type ComputeRoot = (request: SignRequest) => Uint8Array;

/** What both give back is shared: nobody writes to it. */
export interface RememberedRequests {
  /** parseSignRequest that gives equal bodies one request. */
  readonly parse: (body: Uint8Array) => ParsedSignRequest;
  /** computeSigningRoot on the network, once for each request that is remembered. */
  readonly rootOf: ComputeRoot;
}

export function rememberedRequests(network: Network): RememberedRequests {
  const domains = rememberedDomains();
  // One ring; a place of it is an index of each of these.
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
    rootOf(request) {
      const at = requests.indexOf(request); // by identity: a root is never taken for that of another request
      const root = roots[at] ?? computeSigningRoot(request, network, domains);
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
