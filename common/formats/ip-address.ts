// IP addresses between text and bytes. node:net's strict grammar decides what an address is.

import { isIP, isIPv4, SocketAddress } from 'node:net';

export const MAPPED_PREFIX = Buffer.from('00000000000000000000ffff', 'hex');

/** An IPv4-mapped IPv6 address stays one; a zone is no part of it. */
export function parseAddress(text: string): Uint8Array | undefined {
  return isIP(text) === 0 || text.includes('%') ? undefined : addressBytes(text);
}

/** An IPv4-mapped IPv6 address becomes IPv4, a zone is dropped. */
export function parsePeerAddress(text: string): Uint8Array | undefined {
  const zone = text.indexOf('%');
  const bytes = parseAddress(zone === -1 ? text : text.slice(0, zone));
  return bytes !== undefined && isMapped(bytes) ? bytes.subarray(12) : bytes;
}

/** @param bytes 4 or 16 @returns IPv6 compressed and in lower case */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Buffer.from(bytes).toString('hex').match(/.{4}/g) ?? [];
  return new SocketAddress({ address: groups.join(':'), family: 'ipv6' }).address;
}

/** RFC 4291 §2.5.5.2. */
export function isMapped(bytes: Uint8Array): boolean {
  return bytes.length === 16 && Buffer.compare(bytes.subarray(0, 12), MAPPED_PREFIX) === 0;
}

function addressBytes(address: string): Uint8Array {
  if (isIPv4(address)) return Uint8Array.from(address.split('.'), Number);
  const [head = '', tail] = withoutDottedQuad(address).split('::');
  const before = groupsOf(head);
  const after = groupsOf(tail ?? '');
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  return Uint8Array.from([...before, ...zeros, ...after].flatMap((group) => [group >>> 8, group & 0xff]));
}

/** RFC 4291 §2.2, form 3. */
function withoutDottedQuad(address: string): string {
  const start = address.lastIndexOf(':') + 1;
  const quad = address.slice(start);
  if (!isIPv4(quad)) return address;
  const [a = 0, b = 0, c = 0, d = 0] = addressBytes(quad);
  return `${address.slice(0, start)}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

function groupsOf(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}
