// The PROXY protocol, version 2, binary (haproxy, doc/proxy-protocol.txt §2.2): how the parent proxy tells the enclave
// who connected. Written by the parent, so it is as trustworthy as the parent is (specification/enclave.md#shape). Read
// narrowly: PROXY with TCP over IPv4 or IPv6, or LOCAL, whose connection has no client; TLVs are skipped. The text
// form, other families and versions are refused. No I/O.

import { strict as assert } from 'node:assert';
import { addressText, asIpv6, parsePeerAddress } from './ip-address.ts';

export interface ProxyEndpoint {
  /** IPv4 or IPv6, as text. */
  readonly address: string;
  readonly port: number;
}

export interface ProxyAddresses {
  readonly source: ProxyEndpoint;
  readonly destination: ProxyEndpoint;
}

export type ProxyHeader =
  | ({ readonly kind: 'proxied' } & ProxyAddresses)
  /** The proxy speaks for itself. */
  | { readonly kind: 'local' };

export interface ProxyHeaderRefusal {
  readonly kind: 'refused';
  readonly problem: string;
}

/** The whole header, TLVs included: what fits into the smallest TCP segment. */
export const MAX_PROXY_HEADER_BYTES = 536;
/** Signature, version and command, family and transport, length of the rest. */
export const PROXY_PREAMBLE_BYTES = 16;

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const VERSION = 0x20;
const COMMAND = { local: 0x20, proxy: 0x21 } as const;
/** Family in the upper half, transport in the lower: AF_INET and AF_INET6 with STREAM. */
const TCP_OVER = { ipv4: 0x11, ipv6: 0x21 } as const;
const ADDRESS_BYTES: ReadonlyMap<number, number> = new Map([
  [TCP_OVER.ipv4, 4],
  [TCP_OVER.ipv6, 16],
]);

/**
 * Mapped addresses are written as the IPv4 addresses they are; when the two differ in family, both are written as IPv6.
 * @throws RangeError for what is no address or no port
 */
export function encodeProxyHeader({ source, destination }: ProxyAddresses): Buffer {
  const given = [source, destination].map(({ address }) => bytesOf(address));
  const sameFamily = given.every((bytes) => bytes.length === given[0]?.length);
  const addresses = sameFamily ? given : given.map(asIpv6);
  const ports = Buffer.alloc(4);
  ports.writeUInt16BE(source.port, 0);
  ports.writeUInt16BE(destination.port, 2);
  const family = addresses[0]?.length === 4 ? TCP_OVER.ipv4 : TCP_OVER.ipv6;
  return encode(COMMAND.proxy, family, Buffer.concat([...addresses, ports]));
}

/**
 * How long the header is that begins so.
 * @param preamble its first 16 bytes
 */
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

/** @param header exactly as many bytes as `proxyHeaderBytes` says */
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

function encode(command: number, family: number, body: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(body.length);
  return Buffer.concat([SIGNATURE, Buffer.from([command, family]), length, body]);
}

function bytesOf(address: string): Uint8Array {
  const bytes = parsePeerAddress(address);
  if (bytes === undefined) throw new RangeError(`${JSON.stringify(address)} is no IP address`);
  return bytes;
}

function refused(problem: string): ProxyHeaderRefusal {
  return { kind: 'refused', problem };
}
