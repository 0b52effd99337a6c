// The client's address for audit lines (specification/authorization.md#client-address). The client itself writes the
// left end of X-Forwarded-For, so it is read from the right, and only behind trusted proxies.

import { anyCidrContains, type Cidr, canonicalPeerAddress } from './cidr.ts';

export interface ClientAddressOptions {
  readonly trustProxyHeaders: boolean;
  readonly trustedProxyCidrs: readonly Cidr[];
}

export const MAX_FORWARDED_HOPS = 32;

/** @param forwardedFor every X-Forwarded-For header of the request, in order */
export function clientAddress(
  options: ClientAddressOptions,
  peerAddress: string | undefined,
  forwardedFor: readonly string[] | undefined,
): string {
  const peer = peerAddress === undefined ? undefined : canonicalPeerAddress(peerAddress);
  if (peer === undefined) return 'unknown';
  const isTrusted = (address: string) => anyCidrContains(options.trustedProxyCidrs, address);
  if (!options.trustProxyHeaders || forwardedFor === undefined || !isTrusted(peer)) return peer;

  const hops = forwardedFor.join(',').split(',', MAX_FORWARDED_HOPS + 1);
  if (hops.length > MAX_FORWARDED_HOPS) return peer;
  let nearest = peer;
  for (const hop of hops.toReversed()) {
    const address = canonicalPeerAddress(hop.trim());
    if (address === undefined) return peer;
    if (!isTrusted(address)) return address;
    nearest = address;
  }
  return nearest;
}
