// The places of a listener, or of long work. When all are taken, the one not admitted yet that has waited longest loses
// its, of the owner that has most of them: an address that opens connections and says nothing displaces its own.

import { addressText, parsePeerAddress } from './ip-address.ts';

/** A client with a /64 of IPv6 can call from as many addresses as it likes: they count as one. */
const IPV6_SHARE_BYTES = 8;

export class Places<Member extends object> {
  readonly #limit: number;
  readonly #ownerOf: (address: string | undefined) => string;
  readonly #waiting = new Map<string, Set<Member>>();
  readonly #shareOf = new Map<Member, string>();
  readonly #settled = new Set<Member>();

  /** @param ownerOf whose share it is; by default that of an address */
  constructor(limit: number, ownerOf = shareOf) {
    this.#limit = limit;
    this.#ownerOf = ownerOf;
  }

  get taken(): number {
    return this.#shareOf.size + this.#settled.size;
  }

  /** @returns the member that lost its place: the newcomer itself when all others are admitted */
  enter(member: Member, address: string | undefined): Member | undefined {
    this.#wait(member, this.#ownerOf(address));
    if (this.taken <= this.#limit) return undefined;
    const displaced = this.#longestWaiting();
    if (displaced !== undefined) this.leave(displaced);
    return displaced;
  }

  name(member: Member, address: string | undefined): void {
    if (!this.#shareOf.has(member)) return;
    this.leave(member);
    this.#wait(member, this.#ownerOf(address));
  }

  settle(member: Member): void {
    if (!this.#shareOf.has(member)) return;
    this.leave(member);
    this.#settled.add(member);
  }

  leave(member: Member): void {
    if (this.#settled.delete(member)) return;
    const share = this.#shareOf.get(member);
    if (share === undefined) return;
    this.#shareOf.delete(member);
    const others = this.#waiting.get(share);
    others?.delete(member);
    if (others?.size === 0) this.#waiting.delete(share);
  }

  #wait(member: Member, share: string): void {
    const others = this.#waiting.get(share);
    if (others === undefined) this.#waiting.set(share, new Set([member]));
    else others.add(member);
    this.#shareOf.set(member, share);
  }

  #longestWaiting(): Member | undefined {
    let most: ReadonlySet<Member> | undefined;
    for (const members of this.#waiting.values()) if (members.size > (most?.size ?? 0)) most = members;
    const [oldest] = most ?? [];
    return oldest;
  }
}

/** An IPv4 address, or the /64 of an IPv6 one. */
export function shareOf(address: string | undefined): string {
  const bytes = address === undefined ? undefined : parsePeerAddress(address);
  if (bytes === undefined) return '';
  return bytes.length === 4 ? addressText(bytes) : Buffer.from(bytes.subarray(0, IPV6_SHARE_BYTES)).toString('hex');
}
