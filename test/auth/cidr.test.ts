// Which ranges are well-formed and safe, and which addresses lie in them
// (specification/authorization.md#source-networks).

import { expect, it } from 'vitest';
import {
  anyCidrContains,
  canonicalPeerAddress,
  parseCidr,
  parseSafeCidrs,
  unsafeCidrReason,
} from '../../signer/auth/cidr.ts';

function cidr(text: string) {
  const parsed = parseCidr(text);
  if ('refused' in parsed) throw new Error(parsed.refused);
  return parsed;
}

it.each([
  ['10.0.0.0/8', '10.0.0.0/8'],
  ['192.0.2.7/32', '192.0.2.7/32'],
  ['2001:DB8:0:0::/32', '2001:db8::/32'],
  ['::1/128', '::1/128'],
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['2001:db8::1.2.3.4/128', '2001:db8::102:304/128'],
  ['::10.0.0.0/104', '::10.0.0.0/104'],
])('%s is the range %s', (text, canonical) => {
  expect(cidr(text).text).toBe(canonical);
});

it.each([
  '',
  '10.0.0.0',
  '10.0.0.0/',
  '/8',
  '10.0.0.0/08',
  '10.0.0.0/+8',
  '10.0.0.0/33',
  '10.0.0.0/8 ',
  ' 10.0.0.0/8',
  '10.0.0.0/8/8',
  '10/8',
  '10.0.0/8',
  '012.0.0.0/8',
  '0x0a.0.0.0/8',
  '167772160/8',
  '10.0.0.0/255.0.0.0',
  '2001:db8::/129',
  'fe80::%eth0/64',
  '[::1]/128',
  'localhost/32',
])('%j is no range', (text) => {
  expect(parseCidr(text)).toHaveProperty('refused');
});

it('host bits are an error, and the hint is the canonical form', () => {
  expect(parseCidr('10.1.2.3/8')).toEqual({ refused: expect.stringContaining('10.0.0.0/8') });
  expect(parseCidr('2001:db8::1/32')).toEqual({ refused: expect.stringContaining('2001:db8::/32') });
});

it.each([
  ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
  ['::ffff:a00:0/104', '10.0.0.0/8'],
  ['::ffff:192.0.2.1/128', '192.0.2.1/32'],
  ['::ffff:0:0/96', '0.0.0.0/0'],
])('the IPv4-mapped range %s is refused, and the hint is %s', (text, ipv4) => {
  expect(parseCidr(text)).toEqual({ refused: expect.stringContaining(ipv4) });
});

it.each(['0.0.0.0/0', '0.0.0.0/7', '10.0.0.0/7', '::/0', '2000::/3', '2000::/15'])('%s is unsafe', (text) => {
  expect(unsafeCidrReason(cidr(text))).toContain('unsafe');
  expect(parseSafeCidrs(['10.0.0.0/8', text])).toHaveProperty('refused');
});

it.each(['0.0.0.0/8', '10.0.0.0/8', '192.0.2.0/24', '2001::/16', '::/16'])('%s is safe', (text) => {
  expect(unsafeCidrReason(cidr(text))).toBeUndefined();
  expect(parseSafeCidrs([text])).toEqual([cidr(text)]);
});

it('no IPv6 range, however wide, contains an IPv4 peer: a mapped peer counts as IPv4', () => {
  for (const range of ['::/0', '::/16', '::/80']) {
    expect(anyCidrContains([cidr(range)], '::ffff:192.0.2.1')).toBe(false);
    expect(anyCidrContains([cidr(range)], '192.0.2.1')).toBe(false);
  }
});

it('an IPv4-mapped peer is matched as IPv4, in either spelling', () => {
  expect(anyCidrContains([cidr('192.0.2.0/24')], '::ffff:192.0.2.9')).toBe(true);
  expect(anyCidrContains([cidr('192.0.2.0/24')], '::FFFF:c000:209')).toBe(true);
  expect(anyCidrContains([cidr('192.0.2.0/24')], '::ffff:192.0.3.9')).toBe(false);
});

it('the first and last address of a range are in it, their neighbours are not', () => {
  const range = cidr('10.1.0.0/20');
  expect(['10.1.0.0', '10.1.15.255'].map((address) => anyCidrContains([range], address))).toEqual([true, true]);
  expect(['10.0.255.255', '10.1.16.0'].map((address) => anyCidrContains([range], address))).toEqual([false, false]);
});

it.each(['', 'unknown', '10.0.0', '10.0.0.1:443', '010.0.0.1'])('%j is no address and lies in no range', (address) => {
  expect(canonicalPeerAddress(address)).toBeUndefined();
  expect(anyCidrContains([cidr('0.0.0.0/0')], address)).toBe(false);
  expect(anyCidrContains([cidr('::/0')], address)).toBe(false);
});

it.each([
  ['::ffff:127.0.0.1', '127.0.0.1'],
  ['0:0:0:0:0:ffff:7f00:1', '127.0.0.1'],
  ['::ffff:127.0.0.1%lo', '127.0.0.1'],
  ['FE80::0001%eth0', 'fe80::1'],
  ['127.0.0.1', '127.0.0.1'],
  ['2001:db8:0:0:1:0:0:0', '2001:db8:0:0:1::'],
  ['::', '::'],
])('the peer %s is %s', (peer, canonical) => {
  expect(canonicalPeerAddress(peer)).toBe(canonical);
});

it('an IPv4-compatible address (RFC 4291 §2.5.5.1) is IPv6, not the IPv4 address it spells', () => {
  expect(canonicalPeerAddress('::127.0.0.1')).toBe('::127.0.0.1');
  expect(anyCidrContains([cidr('127.0.0.0/8')], '::127.0.0.1')).toBe(false);
  expect(anyCidrContains([cidr('::/104')], '::127.0.0.1')).toBe(false);
  expect(anyCidrContains([cidr('::127.0.0.0/104')], '::127.0.0.1')).toBe(true);
});
