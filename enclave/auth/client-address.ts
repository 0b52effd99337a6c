// The client's address for audit lines (specification/authorization.md#client-address). Authorization never uses it: it
// goes by the TCP peer. X-Forwarded-For is written from left to right by each proxy and its left end by the client
// itself, so it is read from the right, only behind proxies that are trusted, and given up for the peer's address when
// it makes no sense.

import { anyCidrContains, type Cidr, canonicalPeerAddress } from './cidr.ts';

export interface ClientAddressOptions {
  readonly trustProxyHeaders: boolean;
  readonly trustedProxyCidrs: readonly Cidr[];
}

/** More hops than this are not looked at: the peer's address is logged. */
export const MAX_FORWARDED_HOPS = 32;

/**
 * The right-most hop that is no trusted proxy; the left-most one when all are; `unknown` when there is no peer.
 * @param forwardedFor every X-Forwarded-For header of the request, in order
 */
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
