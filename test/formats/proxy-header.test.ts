// The PROXY header by its bytes: what the specification shows, what is written is read again, and everything else is
// refused.

import { describe, expect, it } from 'vitest';
import {
  MAX_PROXY_HEADER_BYTES,
  PROXY_PREAMBLE_BYTES,
  parseProxyHeader,
  proxyHeaderBytes,
} from '../../common/formats/proxy-header.ts';
import { encodeProxyHeader } from '../../parent-proxy/forwarding/ingress.ts';

const SIGNATURE = '0d0a0d0a000d0a515549540a';
const CLIENT = { address: '203.0.113.7', port: 51_234 };
const SIGNER = { address: '10.0.0.5', port: 9443 };

function bytes(...hex: string[]): Buffer {
  return Buffer.from(hex.join(''), 'hex');
}

describe('a PROXY header', () => {
  it('is, for TCP over IPv4, the bytes that the specification describes', () => {
    const encoded = encodeProxyHeader({ source: CLIENT, destination: SIGNER });
    expect(encoded).toEqual(bytes(SIGNATURE, '21', '11', '000c', 'cb007107', '0a000005', 'c822', '24e3'));
    expect(parseProxyHeader(encoded)).toEqual({ kind: 'proxied', source: CLIENT, destination: SIGNER });
  });

  it('is, for TCP over IPv6, 52 bytes and read again', () => {
    const source = { address: '2001:db8::1', port: 1 };
    const destination = { address: '::1', port: 65_535 };
    const encoded = encodeProxyHeader({ source, destination });
    expect(encoded).toHaveLength(52);
    expect(encoded[13]).toBe(0x21);
    expect(parseProxyHeader(encoded)).toEqual({ kind: 'proxied', source, destination });
  });

  it('shows the IPv4 addresses of a listener on ::, without their zone and mapping', () => {
    const source = { address: '::ffff:203.0.113.7', port: 51_234 };
    const destination = { address: '::ffff:10.0.0.5', port: 9443 };
    expect(encodeProxyHeader({ source, destination })).toEqual(
      encodeProxyHeader({ source: CLIENT, destination: SIGNER }),
    );
  });

  it('writes addresses of two families as IPv6', () => {
    const parsed = parseProxyHeader(encodeProxyHeader({ source: CLIENT, destination: { address: '::1', port: 1 } }));
    expect(parsed).toMatchObject({ kind: 'proxied', source: { address: '::ffff:203.0.113.7' } });
  });

  it('may say that the proxy speaks for itself: then whatever addresses it has are ignored', () => {
    expect(parseProxyHeader(bytes(SIGNATURE, '20', '00', '0000'))).toEqual({ kind: 'local' });
    expect(parseProxyHeader(bytes(SIGNATURE, '20', '11', '000c', 'ff'.repeat(12)))).toEqual({ kind: 'local' });
  });

  it('may carry TLVs after its addresses, which are skipped', () => {
    const tlvs = '030004aabbccddea000100';
    const header = bytes(SIGNATURE, '21', '11', '0017', 'cb007107', '0a000005', 'c822', '24e3', tlvs);
    expect(parseProxyHeader(header)).toEqual({ kind: 'proxied', source: CLIENT, destination: SIGNER });
  });

  it.each([
    ['text of version 1', Buffer.from('PROXY TCP4 203.0.113.7 10.0.0.5 51234 9443\r\n'), /signature/],
    ['a TLS ClientHello', bytes('16030100c8010000c40303', '00'.repeat(20)), /signature/],
    ['version 1 in binary', bytes(SIGNATURE, '11', '11', '000c', '00'.repeat(12)), /version 1/],
    ['an unknown command', bytes(SIGNATURE, '22', '11', '000c', '00'.repeat(12)), /command 2/],
    ['UDP', bytes(SIGNATURE, '21', '12', '000c', '00'.repeat(12)), /0x12/],
    ['a Unix socket', bytes(SIGNATURE, '21', '31', '00d8', '00'.repeat(216)), /0x31/],
    ['no family', bytes(SIGNATURE, '21', '00', '0000'), /0x00/],
    ['addresses that are cut off', bytes(SIGNATURE, '21', '11', '000b', '00'.repeat(11)), /too short/],
    ['IPv4 addresses under the family of IPv6', bytes(SIGNATURE, '21', '21', '000c', '00'.repeat(12)), /too short/],
    ['fewer bytes than it says', bytes(SIGNATURE, '21', '11', '000c', '00'.repeat(11)), /has 27 bytes/],
    ['more bytes than it says', bytes(SIGNATURE, '21', '11', '000c', '00'.repeat(13)), /has 29 bytes/],
    ['half a preamble', bytes(SIGNATURE), /cut off/],
    ['nothing', Buffer.alloc(0), /cut off/],
  ])('is refused when it is %s', (_what, header, problem) => {
    expect(parseProxyHeader(header)).toEqual({ kind: 'refused', problem: expect.stringMatching(problem) });
  });

  it('is refused by its announced length, before the rest of it is here', () => {
    const most = MAX_PROXY_HEADER_BYTES - PROXY_PREAMBLE_BYTES;
    const announcing = (length: number) => bytes(SIGNATURE, '21', '11', length.toString(16).padStart(4, '0'));
    expect(proxyHeaderBytes(announcing(most))).toBe(MAX_PROXY_HEADER_BYTES);
    expect(proxyHeaderBytes(announcing(most + 1))).toMatchObject({ kind: 'refused', problem: /537 bytes/ });
  });

  it('is never written with what is no address or no port', () => {
    const write = (address: string, port: number) => () =>
      encodeProxyHeader({ source: { address, port }, destination: SIGNER });
    expect(write('localhost', 1)).toThrow(RangeError);
    expect(write('', 1)).toThrow(RangeError);
    expect(write('127.0.0.1', 65_536)).toThrow(RangeError);
  });
});
