// A caller of the stateless mode with the networks that its credential is good from.

import type { Caller } from './authenticator.ts';
import { anyCidrContains, type Cidr } from './cidr.ts';

export interface BoundCaller {
  readonly caller: Caller;
  /** Empty: from anywhere. */
  readonly boundCidrs: readonly Cidr[];
}

export function admitsPeer({ boundCidrs }: BoundCaller, peerAddress: string | undefined): boolean {
  if (boundCidrs.length === 0) return true;
  return peerAddress !== undefined && anyCidrContains(boundCidrs, peerAddress);
}
