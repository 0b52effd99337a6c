// The PROXY header that the parent proxy writes before the bytes of a client: common/formats/proxy-header.ts reads it
// in the enclave, which writes none.

import { MAPPED_PREFIX, parsePeerAddress } from '../../common/formats/ip-address.ts';
import { COMMAND, type ProxyAddresses, SIGNATURE, TCP_OVER } from '../../common/formats/proxy-header.ts';

/** Mapped addresses are written as IPv4; when the two differ in family, both as IPv6. @throws RangeError */
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

/** @param bytes 4, or 16 which are returned as they are */
function asIpv6(bytes: Uint8Array): Uint8Array {
  return bytes.length === 16 ? bytes : Buffer.concat([MAPPED_PREFIX, bytes]);
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
