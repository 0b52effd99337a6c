// The PROXY protocol, version 2 (haproxy, doc/proxy-protocol.txt §2.2): TLVs are skipped, everything else is refused.

import { strict as assert } from 'node:assert';
import { addressText } from './ip-address.ts';

interface ProxyEndpoint {
  readonly address: string;
  readonly port: number;
}

export interface ProxyAddresses {
  readonly source: ProxyEndpoint;
  readonly destination: ProxyEndpoint;
}

export type ProxyHeader = ({ readonly kind: 'proxied' } & ProxyAddresses) | { readonly kind: 'local' };

export interface ProxyHeaderRefusal {
  readonly kind: 'refused';
  readonly problem: string;
}

/** TLVs included: what fits into the smallest TCP segment. */
export const MAX_PROXY_HEADER_BYTES = 536;
export const PROXY_PREAMBLE_BYTES = 16;

export const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const VERSION = 0x20;
export const COMMAND = { local: 0x20, proxy: 0x21 } as const;
/** AF_INET and AF_INET6 with STREAM. */
export const TCP_OVER = { ipv4: 0x11, ipv6: 0x21 } as const;
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([
  [TCP_OVER.ipv4, 4],
  [TCP_OVER.ipv6, 16],
]);

/** @param preamble its first 16 bytes */
export function proxyHeaderBytes(preamble: Uint8Array): number | ProxyHeaderRefusal {
  assert(preamble.length >= PROXY_PREAMBLE_BYTES);
  const bytes = Buffer.from(preamble.buffer, preamble.byteOffset, preamble.byteLength);
  if (Buffer.compare(bytes.subarray(0, SIGNATURE.length), SIGNATURE) !== 0)
    return refused('the connection does not begin with the signature of PROXY protocol version 2');
  const [command = 0] = bytes.subarray(SIGNATURE.length);
  if ((command & 0xf0) !== VERSION) return refused(`version ${command >> 4} of the PROXY protocol`);
  if (command !== COMMAND.local && command !== COMMAND.proxy) return refused(`PROXY command ${command & 0x0f}`);
  const total = PROXY_PREAMBLE_BYTES + bytes.readUInt16BE(14);
  return total <= MAX_PROXY_HEADER_BYTES ? total : refused(`a PROXY header of ${total} bytes`);
}

export function parseProxyHeader(header: Uint8Array): ProxyHeader | ProxyHeaderRefusal {
  if (header.length < PROXY_PREAMBLE_BYTES) return refused('the PROXY header is cut off');
  const total = proxyHeaderBytes(header);
  if (typeof total !== 'number') return total;
  if (header.length !== total) return refused(`the PROXY header has ${header.length} bytes, and says ${total}`);
  const bytes = Buffer.from(header.buffer, header.byteOffset, header.byteLength);
  if (bytes[12] === COMMAND.local) return { kind: 'local' }; // §2.2: its family and addresses are ignored
  const family = bytes[13] ?? 0;
  const length = ADDRESS_BYTES.get(family);
  if (length === undefined) return refused(`PROXY family and transport 0x${family.toString(16).padStart(2, '0')}`);
  if (total < PROXY_PREAMBLE_BYTES + 2 * length + 4) return refused('the PROXY header is too short for its addresses');
  const body = bytes.subarray(PROXY_PREAMBLE_BYTES);
  return {
    kind: 'proxied',
    source: { address: addressText(body.subarray(0, length)), port: body.readUInt16BE(2 * length) },
    destination: {
      address: addressText(body.subarray(length, 2 * length)),
      port: body.readUInt16BE(2 * length + 2),
    },
  };
}

function refused(problem: string): ProxyHeaderRefusal {
  return { kind: 'refused', problem };
}
