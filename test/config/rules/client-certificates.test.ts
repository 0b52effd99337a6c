// What a configuration may say of client certificates: each thing that would be looked at by nobody, or could mean two
// things, is refused with what to do.

import { describe, expect, it } from 'vitest';
import { keyArn, load, loadGood, sentencesOf } from '../loading.ts';

const RECIPIENT = 'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p';
const HEX = 'ab'.repeat(32);
const STATIC = { policies: [{ name: 'all', rules: [{ effect: 'allow' }] }] };
const FILES = { mode: 'file', file: { cert_path: 'cert.pem', key_path: 'key.pem' } };
const PINNED = { name: 'ssv', spki_sha256: HEX, policies: ['all'] };
const NAMED = { name: 'teku', subject: 'CN=teku', policies: ['all'] };

const yamlOf = (tls: object, more: object = { static_auth: STATIC }): string =>
  JSON.stringify({ tls: { ...FILES, ...tls }, ...more });

describe('the start is refused when', () => {
  it.each([
    [
      'no listener asks',
      { mode: 'disabled', known_clients: [PINNED] },
      'tls.known_clients is set, and no TLS listener',
    ],
    ['a CA is for no listener', { mode: 'disabled', client_ca: 'ca.pem' }, 'tls.client_ca is set, and no TLS listener'],
    [
      'a subject has no CA',
      { known_clients: [NAMED] },
      'tls.known_clients[0].subject is set, and there is no tls.client_ca',
    ],
    ['a CA has no subject', { client_ca: 'ca.pem', known_clients: [PINNED] }, 'tls.client_ca is set, and no client in'],
    ['nobody could connect', { client_auth: 'required' }, 'tls.client_auth is required, and there are no'],
    [
      'two clients share a name',
      { known_clients: [PINNED, { ...PINNED, spki_sha256: 'cd'.repeat(32) }] },
      '[1].name is the',
    ],
    [
      'two clients share a pin, in two spellings',
      { known_clients: [PINNED, { ...PINNED, name: 'other', spki_sha256: HEX.toUpperCase() }] },
      'tls.known_clients[1] is known by the same as an earlier client',
    ],
    [
      'a policy is not there',
      { known_clients: [{ ...PINNED, policies: ['none'] }] },
      '[0].policies[0] names a policy that',
    ],
    ['a client has no policy', { known_clients: [{ ...PINNED, policies: [] }] }, '[0].policies must name at least one'],
    ['a client is known by nothing', { known_clients: [{ name: 'x', policies: ['all'] }] }, 'must have exactly one of'],
    ['a client is known by two things', { known_clients: [{ ...PINNED, file: 'x' }] }, 'must have exactly one of'],
    [
      'a pin is no digest',
      { known_clients: [{ ...PINNED, spki_sha256: 'abcd' }] },
      '[0].spki_sha256 must be a SHA-256',
    ],
    ['a subject is no name', { known_clients: [{ ...NAMED, subject: 'teku' }] }, '[0].subject must be a subject as'],
    ['a range is unsafe', { known_clients: [{ ...PINNED, bound_cidrs: ['0.0.0.0/0'] }] }, 'bound_cidrs[0] is refused'],
  ])('%s', (_what, tls, sentence) => {
    expect(sentencesOf({ yaml: yamlOf(tls) }).join('\n')).toContain(sentence);
  });

  it('credentials are in the state table', () => {
    const ceremony = {
      generation: 1,
      kms_threshold: 1,
      kms_keys: [{ arns: [keyArn(1)] }],
      root_token_recipients: [RECIPIENT],
    };
    const more = { signer_state: { backend: 'dynamodb', table: 'state' }, ceremony };
    const sentences = sentencesOf({ yaml: yamlOf({ known_clients: [PINNED] }, more) });
    expect(sentences.join('\n')).toContain('tls.known_clients is set together with signer_state');
  });
});

describe('a configuration with known clients', () => {
  it('has pins as digits and subjects without spaces, and somebody who is let in', () => {
    const colons = HEX.toUpperCase().match(/../g)?.join(':');
    const base64 = `sha256//${Buffer.from('cd'.repeat(32), 'hex').toString('base64')}`;
    const known_clients = [
      { ...PINNED, spki_sha256: colons },
      { name: 'whole', certificate_sha256: base64, policies: ['all'] },
      { ...NAMED, subject: 'CN=a\\, b, O=Example,  C=CH' },
    ];
    const yaml = yamlOf({ client_ca: 'ca.pem', known_clients });
    expect(loadGood({ yaml }).tls.known_clients).toMatchObject([
      { spki_sha256: HEX },
      { certificate_sha256: 'cd'.repeat(32) },
      { subject: 'CN=a\\, b,O=Example,C=CH' },
    ]);
    const loaded = load({ yaml });
    expect(loaded.ok && loaded.warnings.filter(({ at }) => at === 'static_auth')).toEqual([]);
  });
});
