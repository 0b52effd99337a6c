// Signing roots of requests that come again: parsing gives equal bodies one request (api/remembered-requests.ts), and the root of that one
// was computed when it came first. Requests are known by identity, so a root is never taken for that of another. The last few are
// remembered, and no blocks or envelopes: those do not come again, and a whole one would stay in memory.

import { MAX_REMEMBERED_BODIES } from '../../api/remembered-requests.ts';
import type { SignRequest } from '../../api/sign-request.ts';
import type { Network } from '../networks.ts';
import { rememberedDomains } from './domains.ts';
import { computeSigningRoot } from './root.ts';

export type ComputeRoot = (request: SignRequest) => Uint8Array;

/** computeSigningRoot on one network. What is given back is shared: it is not written to. */
export function rememberedRoots(network: Network): ComputeRoot {
  const domains = rememberedDomains();
  const requests: SignRequest[] = [];
  const roots: Uint8Array[] = [];
  let oldest = 0;
  return (request) => {
    const known = roots[requests.indexOf(request)];
    if (known !== undefined) return known;
    const root = computeSigningRoot(request, network, domains);
    if (request.operation === 'BLOCK_V2' || request.operation === 'EXECUTION_PAYLOAD_ENVELOPE') return root;
    requests[oldest] = request;
    roots[oldest] = root;
    oldest = (oldest + 1) % MAX_REMEMBERED_BODIES;
    return root;
  };
}
