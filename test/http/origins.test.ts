// Which requests are those of a foreign web page, by what a browser says of them, and which are addressed to a name
// that is not listed (server.allowed_hosts).

import { expect, it } from 'vitest';
import { foreignHost, foreignOrigin } from '../../signer/http/origins.ts';

const HOST = { host: 'signer.example:9000' };
const OWN = 'http://signer.example:9000';
const OPS = 'https://ops.example';

it.each([
  ['no browser', {}, false],
  ['an address that was typed in', { 'sec-fetch-site': 'none' }, false],
  ['a page of the signer’s own host', { origin: OWN, 'sec-fetch-site': 'same-origin' }, false],
  ['a page of its own host behind TLS', { origin: 'https://signer.example', host: 'signer.example' }, false],
  ['a page of its own host, the default port written', { origin: OPS, host: 'ops.example:443' }, false],
  ['an older browser’s page of its own host', { origin: OWN }, false],
  ['a GET of a page of the same site', { 'sec-fetch-site': 'same-site' }, false],
  ['a GET of a page of another site', { 'sec-fetch-site': 'cross-site' }, true],
  ['the header given twice', { 'sec-fetch-site': 'same-origin, cross-site' }, true],
  ['a page of another host', { origin: OPS }, true],
  ['a page of another port', { origin: 'http://signer.example:9001' }, true],
  [
    'a page of another host of the same site',
    { origin: 'http://www.signer.example:9000', 'sec-fetch-site': 'same-site' },
    true,
  ],
  ['a page that names the own host and comes from elsewhere', { origin: OWN, 'sec-fetch-site': 'cross-site' }, true],
  ['a page without an origin of its own', { origin: 'null' }, true],
  ['an origin that is none', { origin: 'signer.example:9000' }, true],
  ['an origin with a path', { origin: `${OWN}/x` }, true],
  ['an extension', { origin: 'chrome-extension://signer.example:9000' }, true],
  ['a request without a host', { origin: OWN, host: undefined }, true],
])('%s', (_what, headers, isForeign) => {
  expect(foreignOrigin(null)({ ...HOST, ...headers })).toBe(isForeign);
});

it('an origin that is listed may, another may not, and the own host still may', () => {
  const isForeign = foreignOrigin([OPS]);
  expect(isForeign({ ...HOST, origin: OPS, 'sec-fetch-site': 'cross-site' })).toBe(false);
  expect(isForeign({ ...HOST, origin: 'https://evil.example' })).toBe(true);
  expect(isForeign({ ...HOST, 'sec-fetch-site': 'cross-site' })).toBe(true);
  expect(isForeign({ ...HOST, origin: OWN })).toBe(false);
});

it('every origin may when * is listed', () => {
  expect(foreignOrigin(['*'])({ ...HOST, origin: 'null', 'sec-fetch-site': 'cross-site' })).toBe(false);
});

const LISTED = ['localhost', '127.0.0.1', 'signer.example', '::1'];

it.each(['localhost', 'LocalHost:9000', '127.0.0.1:9000', 'signer.example:', '[::1]:9000', '[::1]'])(
  'the host %s is listed',
  (host) => {
    expect(foreignHost(LISTED)({ host })).toBe(false);
  },
);

it.each([
  'evil.example:9000',
  'localhost.evil.example',
  '127.0.0.1.evil',
  'x@localhost',
  'localhost:80@evil',
  '',
  '[::2]',
])('the host %s is foreign', (host) => {
  expect(foreignHost(LISTED)({ host })).toBe(true);
});

it('without a host a request is foreign, and without a list none is', () => {
  expect(foreignHost(LISTED)({})).toBe(true);
  expect(foreignHost(null)({ host: 'evil.example' })).toBe(false);
});
