// Which address an audit line shows (specification/authorization.md#client-address).

import { expect, it } from 'vitest';
import { parseSafeCidrs } from '../../signer/auth/cidr.ts';
import { clientAddress, MAX_FORWARDED_HOPS } from '../../signer/auth/client-address.ts';

const PROXY = '10.0.0.1';

function trusting(...cidrs: string[]) {
  const trustedProxyCidrs = parseSafeCidrs(cidrs);
  if ('refused' in trustedProxyCidrs) throw new Error(trustedProxyCidrs.refused);
  return { trustProxyHeaders: true, trustedProxyCidrs };
}

const options = trusting('10.0.0.0/8', '2001:db8::/32');

it('without trust_proxy_headers the peer is logged', () => {
  expect(clientAddress({ ...options, trustProxyHeaders: false }, PROXY, ['192.0.2.1'])).toBe(PROXY);
});

it('an untrusted peer cannot choose its address', () => {
  expect(clientAddress(options, '192.0.2.66', ['198.51.100.1'])).toBe('192.0.2.66');
  expect(clientAddress(trusting(), PROXY, ['198.51.100.1'])).toBe(PROXY);
});

it('behind a trusted proxy the right-most untrusted hop is the client', () => {
  expect(clientAddress(options, PROXY, ['192.0.2.1'])).toBe('192.0.2.1');
  expect(clientAddress(options, PROXY, ['203.0.113.9, 192.0.2.1, 10.9.9.9'])).toBe('192.0.2.1');
  expect(clientAddress(options, PROXY, ['203.0.113.9', '192.0.2.1,2001:db8::5'])).toBe('192.0.2.1');
});

it('what the client wrote itself on the left is not believed', () => {
  expect(clientAddress(options, PROXY, ['10.1.1.1, garbage, 192.0.2.1'])).toBe('192.0.2.1');
});

it('when every hop is a trusted proxy the left-most is the client', () => {
  expect(clientAddress(options, PROXY, ['10.1.1.1, 10.2.2.2'])).toBe('10.1.1.1');
});

it.each(['', 'unknown', '192.0.2.1:443', '192.0.2.1, ', 'garbage, 10.2.2.2'])(
  'after %j the peer is logged',
  (header) => {
    expect(clientAddress(options, PROXY, [header])).toBe(PROXY);
  },
);

function hops(count: number): string {
  return `192.0.2.1${', 10.0.0.9'.repeat(count - 1)}`;
}

it('more hops than the limit are not looked at', () => {
  expect(clientAddress(options, PROXY, [hops(MAX_FORWARDED_HOPS)])).toBe('192.0.2.1');
  expect(clientAddress(options, PROXY, [hops(MAX_FORWARDED_HOPS + 1)])).toBe(PROXY);
});

it('addresses are logged in their one spelling', () => {
  expect(clientAddress(options, '::ffff:10.0.0.1', undefined)).toBe(PROXY);
  expect(clientAddress(options, '::ffff:10.0.0.1', ['2001:DB9:0::1'])).toBe('2001:db9::1');
});

it('a socket without a peer is logged as unknown', () => {
  expect(clientAddress(options, undefined, ['192.0.2.1'])).toBe('unknown');
});
