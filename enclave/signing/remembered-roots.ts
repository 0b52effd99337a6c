// Signing roots of requests that come again: parsing gives equal bodies one request (api/remembered-requests.ts), and the root of that one
// was computed when it came first. Requests are known by identity, so a root is never taken for that of another. What is remembered ends with
// its request: those that parsing does not remember, whole blocks among them, are not kept in memory by their root.

import type { SignRequest } from '../api/sign-request.ts';
import { rememberedDomains } from './domains.ts';
import type { Network } from './networks.ts';
import { computeSigningRoot } from './root.ts';

export type ComputeRoot = (request: SignRequest) => Uint8Array;

/** computeSigningRoot on one network. What is given back is shared: it is not written to. */
export function rememberedRoots(network: Network): ComputeRoot {
  const domains = rememberedDomains();
  const roots = new WeakMap<SignRequest, Uint8Array>();
  return (request) => {
    const known = roots.get(request);
    if (known !== undefined) return known;
    const root = computeSigningRoot(request, network, domains);
    roots.set(request, root);
    return root;
  };
}
