// Network ranges a token can be bound to (specification/authorization.md#source-networks). A range that would let in a
// large part of the Internet is unsafe.

import { addressText, isMapped, parseAddress, parsePeerAddress } from '../../common/formats/ip-address.ts';

export interface Cidr {
  readonly family: 4 | 6;
  /** 4 or 16 bytes, host bits zero. */
  readonly network: Uint8Array;
  readonly prefixLength: number;
  /** Canonical: `10.0.0.0/8`, `2001:db8::/32`. */
  readonly text: string;
}

interface CidrRefusal {
  readonly refused: string;
}

const MIN_PREFIX_LENGTH = { 4: 8, 6: 16 } as const;

/** Syntax only: the range may still be unsafe. */
export function parseCidr(text: string): Cidr | CidrRefusal {
  const parts = /^([0-9A-Fa-f:.]+)\/(0|[1-9][0-9]{0,2})$/.exec(text);
  const bytes = parseAddress(parts?.[1] ?? '');
  if (bytes === undefined) return { refused: 'a range is written ADDRESS/PREFIX-LENGTH, as in 10.1.0.0/16' };
  const family = bytes.length === 4 ? 4 : 6;
  const prefixLength = Number(parts?.[2]);
  if (prefixLength > bytes.length * 8)
    return { refused: `a prefix length of IPv${family} is at most ${bytes.length * 8}` };
  if (isMapped(bytes) && prefixLength >= 96) {
    return {
      refused: `write the IPv4 range as ${cidrText(maskBytes(bytes.subarray(12), prefixLength - 96), prefixLength - 96)}`,
    };
  }
  const network = maskBytes(bytes, prefixLength);
  const canonical = cidrText(network, prefixLength);
  if (Buffer.compare(network, bytes) !== 0)
    return { refused: `host bits are set; the range of this address is ${canonical}` };
  return { family, network, prefixLength, text: canonical };
}

/** Undefined when a token or a trusted proxy may be bound to this range. */
export function unsafeCidrReason(cidr: Cidr): string | undefined {
  const shortest = MIN_PREFIX_LENGTH[cidr.family];
  if (cidr.prefixLength >= shortest) return undefined;
  return `${cidr.text} is unsafe: an IPv${cidr.family} prefix is at least /${shortest}`;
}

export function parseSafeCidrs(texts: readonly string[]): readonly Cidr[] | CidrRefusal {
  const cidrs: Cidr[] = [];
  for (const text of texts) {
    const cidr = parseCidr(text);
    if ('refused' in cidr) return { refused: `${JSON.stringify(text.slice(0, 64))}: ${cidr.refused}` };
    const unsafe = unsafeCidrReason(cidr);
    if (unsafe !== undefined) return { refused: unsafe };
    cidrs.push(cidr);
  }
  return cidrs;
}

export function anyCidrContains(cidrs: readonly Cidr[], address: string): boolean {
  const bytes = parsePeerAddress(address);
  return bytes !== undefined && cidrs.some((cidr) => matchesPrefix(cidr, bytes));
}

/** IPv4-mapped IPv6 becomes IPv4, zone identifiers are dropped. Undefined when the text is no IP address. */
export function canonicalPeerAddress(address: string): string | undefined {
  const bytes = parsePeerAddress(address);
  return bytes === undefined ? undefined : addressText(bytes);
}

function matchesPrefix(cidr: Cidr, bytes: Uint8Array): boolean {
  if (bytes.length !== cidr.network.length) return false;
  return bytes.every((byte, index) => (byte & byteMask(cidr.prefixLength, index)) === cidr.network[index]);
}

function cidrText(network: Uint8Array, prefixLength: number): string {
  return `${addressText(network)}/${prefixLength}`;
}

function maskBytes(bytes: Uint8Array, prefixLength: number): Uint8Array {
  return bytes.map((byte, index) => byte & byteMask(prefixLength, index));
}

function byteMask(prefixLength: number, index: number): number {
  const kept = Math.min(8, Math.max(0, prefixLength - index * 8));
  return (0xff << (8 - kept)) & 0xff;
}
