// The Authorization header, also as a real node:http server hands it over.

import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, it } from 'vitest';
import { type Credential, MAX_AUTHORIZATION_CHARACTERS, parseAuthorization } from '../../signer/auth/tokens.ts';

function tokenOf(credential: Credential): string | undefined {
  return credential.kind === 'token' ? credential.token.toString() : undefined;
}

function basic(userAndPassword: string): string {
  return `Basic ${Buffer.from(userAndPassword).toString('base64')}`;
}

it('no header is no credential', () => {
  expect(parseAuthorization(undefined)).toEqual({ kind: 'none' });
  expect(parseAuthorization([])).toEqual({ kind: 'none' });
});

it.each(['Bearer', 'bearer', 'BEARER'])('a %s token is taken as it is', (scheme) => {
  expect(tokenOf(parseAuthorization([`${scheme} sr_client_abc-_123`]))).toBe('sr_client_abc-_123');
});

it('the password of Basic is the token and the user name is ignored', () => {
  expect(tokenOf(parseAuthorization([basic('anyone:the token')]))).toBe('the token');
  expect(tokenOf(parseAuthorization([basic(':the token')]))).toBe('the token');
  expect(tokenOf(parseAuthorization([basic('u:the token').replace('Basic', 'bAsIc')]))).toBe('the token');
});

it('only the first colon of Basic separates: a password may hold colons', () => {
  expect(tokenOf(parseAuthorization([basic('user:a:b:c')]))).toBe('a:b:c');
});

it.each([
  '',
  'Bearer',
  'Bearer ',
  'Bearer    ',
  'Bearer\ttoken',
  ' Bearer token',
  'token-without-scheme',
  'Digest username="x"',
  'Negotiate abcd',
  'Basic !!!!',
  'Basic',
  `${basic('user:password')}=`,
  basic('user:password!').replaceAll('=', ''),
  basic('user:pässwörd??>').replaceAll('+', '-').replaceAll('/', '_'),
  basic('no colon here'),
  basic('user:'),
  basic(':'),
  `Bearer ${'x'.repeat(MAX_AUTHORIZATION_CHARACTERS)}`,
])('%j is malformed, never no credential', (header) => {
  expect(parseAuthorization([header])).toEqual({ kind: 'malformed' });
});

it('the longest static token that the configuration takes fits in both schemes', () => {
  const token = 'x'.repeat(4096);
  expect(tokenOf(parseAuthorization([`Bearer ${token}`]))).toBe(token);
  expect(tokenOf(parseAuthorization([basic(`user:${token}`)]))).toBe(token);
});

it('two Authorization headers are malformed, even when they agree', () => {
  expect(parseAuthorization(['Bearer one-and-the-same', 'Bearer one-and-the-same'])).toEqual({ kind: 'malformed' });
});

/** What parseAuthorization makes of raw header lines that reached a node:http server over a socket. */
async function overHttp(lines: readonly string[]): Promise<Credential> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  try {
    const request = once(server, 'request');
    socket.write(Buffer.from(['GET / HTTP/1.1', 'Host: signer', ...lines, '', ''].join('\r\n')));
    const [message] = await request;
    return parseAuthorization(message.headersDistinct.authorization);
  } finally {
    socket.destroy();
    server.close();
  }
}

it('over a real connection: two Authorization headers are seen as two', async () => {
  expect(await overHttp(['Authorization: Bearer good-token', 'authorization: Bearer other'])).toEqual({
    kind: 'malformed',
  });
});

it('over a real connection: a token beyond ASCII arrives as the UTF-8 bytes that were sent', async () => {
  expect(tokenOf(await overHttp(['Authorization: Bearer schlüssel-für-den-signer']))).toBe('schlüssel-für-den-signer');
  expect(tokenOf(await overHttp([`Authorization: ${basic('x:schlüssel-für-den-signer')}`]))).toBe(
    'schlüssel-für-den-signer',
  );
});
