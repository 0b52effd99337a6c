// The stateless mode, driven through the header parser as the HTTP side does it
// (specification/authorization.md#credentials).

import { describe, expect, it } from 'vitest';
import type { Policy } from '../../signer/api/policy.ts';
import type { Authentication, Authenticator, Caller } from '../../signer/auth/authenticator.ts';
import { parseSafeCidrs } from '../../signer/auth/cidr.ts';
import { evaluate } from '../../signer/auth/evaluate.ts';
import { declareClients, type StaticClient } from '../../signer/auth/known-clients.ts';
import { createStaticAuthenticator, type StaticAuthenticator, type StaticToken } from '../../signer/auth/static.ts';
import { parseAuthorization } from '../../signer/auth/tokens.ts';
import type { ClientCertificate } from '../../signer/tls/client-certificate.ts';

const PEER = '192.0.2.10';
const POLICIES: Policy[] = [
  { name: 'seal', rules: [{ effect: 'allow', scopes: ['chamber_seal'] }] },
  { name: 'status', rules: [{ effect: 'allow', scopes: ['chamber_status'] }] },
  { name: 'never-seal', rules: [{ effect: 'deny', scopes: ['chamber_seal'] }] },
];

function token(secret: string, policies: string[], cidrs: string[] = []): StaticToken {
  const boundCidrs = parseSafeCidrs(cidrs);
  if ('refused' in boundCidrs) throw new Error(boundCidrs.refused);
  return { secret: Buffer.from(secret), policies, boundCidrs };
}

function authenticator(tokens: StaticToken[], anonymousPolicies: string[] = []): StaticAuthenticator {
  return createStaticAuthenticator({ policies: POLICIES, anonymousPolicies, tokens });
}

function ask(subject: Authenticator, header: string | undefined, peer: string | undefined = PEER) {
  return subject.authenticate(parseAuthorization(header === undefined ? undefined : [header]), peer);
}

function refused(reason: string) {
  return { kind: 'refused', reason };
}

it('without static_auth nobody gets in: 401 without a token, 403 with one', () => {
  const subject = createStaticAuthenticator({ policies: [], anonymousPolicies: [], tokens: [] });
  expect(ask(subject, undefined)).toEqual(refused('missing_credentials'));
  expect(ask(subject, 'Bearer sixteen-characters-or-more')).toEqual(refused('invalid_token'));
});

it('a token is its caller, by Bearer and by Basic with any user name', () => {
  const subject = authenticator([token('first-static-token', ['status']), token('second-static-token', ['seal'])]);
  const basic = `Basic ${Buffer.from('whoever:second-static-token').toString('base64')}`;
  for (const header of ['Bearer second-static-token', basic]) {
    expect(ask(subject, header)).toMatchObject({ kind: 'caller', caller: { accessor: 'static:1', management: false } });
  }
});

it('a caller has the rules of all the policies of its token, and no others', () => {
  const subject = authenticator([token('first-static-token', ['status', 'seal', 'never-seal'])]);
  const answer = ask(subject, 'Bearer first-static-token');
  if (answer.kind !== 'caller') throw new Error(answer.reason);
  expect(evaluate(answer.caller.access, { scope: 'chamber_status' })).toEqual({ allowed: true });
  expect(evaluate(answer.caller.access, { scope: 'chamber_seal' })).toMatchObject({ policy: 'never-seal' });
  expect(evaluate(answer.caller.access, { scope: 'public_keys' }).allowed).toBe(false);
});

it('anonymous that is configured is checked against its policies, not let in everywhere', () => {
  const answer = ask(authenticator([], ['status']), undefined);
  if (answer.kind !== 'caller') throw new Error(answer.reason);
  expect(answer.caller.accessor).toBe('anonymous');
  expect(evaluate(answer.caller.access, { scope: 'chamber_status' }).allowed).toBe(true);
  expect(evaluate(answer.caller.access, { scope: 'chamber_seal' }).allowed).toBe(false);
});

it('a token that is present but unknown gets 403, never anonymous access', () => {
  const subject = authenticator([token('first-static-token', ['seal'])], ['status']);
  for (const wrong of ['first-static-toke', 'first-static-token2', 'First-static-token', 'x']) {
    expect(ask(subject, `Bearer ${wrong}`)).toEqual(refused('invalid_token'));
  }
});

describe('where nobody could be told apart', () => {
  const open = { policies: POLICIES.slice(0, 1), anonymousPolicies: ['seal'], tokens: [] };
  const HEADERS = ['Bearer NIL', 'Bearer api-token-0x1234', 'Basic ????', 'Digest x', ''];

  it('no credential is looked at; the first is told, and its bytes are wiped', () => {
    let told = 0;
    const subject = createStaticAuthenticator(open, () => (told += 1));
    expect(ask(subject, undefined)).toMatchObject({ caller: { accessor: 'anonymous' } });
    expect(told).toBe(0);
    for (const header of HEADERS) expect(ask(subject, header)).toMatchObject({ caller: { accessor: 'anonymous' } });
    expect(told).toBe(1);
    const secret = Buffer.from('of-another-service');
    subject.authenticate({ kind: 'token', token: secret }, PEER);
    expect(secret.every((byte) => byte === 0)).toBe(true);
  });

  it.each([
    ['a token', { ...open, tokens: [token('first-static-token', ['seal'])] }],
    ['a known client', { ...open, clients: declareClients([]) }],
    ['a policy that a token could have', { ...open, policies: POLICIES.slice(0, 2) }],
    ['nothing for the anonymous', { ...open, anonymousPolicies: [] }],
    ['nothing at all', { policies: [], anonymousPolicies: [], tokens: [] }],
  ])('with %s, what is not good is refused', (_, options) => {
    const subject = createStaticAuthenticator(options, () => expect.unreachable());
    expect(HEADERS.map((header) => ask(subject, header))).toEqual(
      [
        ...[
          'invalid_token',
          'invalid_token',
          'malformed_credentials',
          'malformed_credentials',
          'malformed_credentials',
        ],
      ].map(refused),
    );
  });

  it('a reload that declares a token ends it, one that removes the last begins it', () => {
    const subject = createStaticAuthenticator(open);
    expect(ask(subject, 'Bearer NIL').kind).toBe('caller');
    subject.replace({ ...open, tokens: [token('first-static-token', ['seal'])] });
    expect(ask(subject, 'Bearer NIL')).toEqual(refused('invalid_token'));
    subject.replace(open);
    expect(ask(subject, 'Bearer NIL').kind).toBe('caller');
  });

  it('a certificate is judged all the same', () => {
    const subject = createStaticAuthenticator(open);
    for (const header of [undefined, 'Bearer NIL']) {
      const credential = parseAuthorization(header === undefined ? undefined : [header]);
      expect(subject.authenticate(credential, PEER, shown('CN=x'))).toEqual(refused('client_certificate_unknown'));
    }
  });
});

it('a malformed or unsupported Authorization header gets 401, never anonymous access', () => {
  const subject = authenticator([token('first-static-token', ['seal'])], ['status']);
  for (const header of ['', 'Bearer', 'Digest first-static-token', 'Basic ????']) {
    expect(ask(subject, header)).toEqual(refused('malformed_credentials'));
  }
});

it('a bound token is good from its networks only, and does not become anonymous elsewhere', () => {
  const subject = authenticator([token('bound-static-token', ['seal'], ['192.0.2.0/24', '2001:db8::/32'])], ['status']);
  for (const peer of ['192.0.2.77', '::ffff:192.0.2.77', '2001:db8::7']) {
    expect(ask(subject, 'Bearer bound-static-token', peer).kind).toBe('caller');
  }
  for (const peer of ['192.0.3.1', '::ffff:192.0.3.1', '2001:db9::7', '127.0.0.1', 'not an address']) {
    expect(ask(subject, 'Bearer bound-static-token', peer)).toEqual(refused('peer_not_allowed'));
  }
});

it('a bound token is not good from a peer that is not known', () => {
  const subject = authenticator([token('bound-static-token', ['seal'], ['192.0.2.0/24'])]);
  const credential = parseAuthorization(['Bearer bound-static-token']);
  expect(subject.authenticate(credential, undefined)).toEqual(refused('peer_not_allowed'));
});

it('secrets of the configuration and credentials of requests are wiped', () => {
  const declared = token('first-static-token', ['seal']);
  const subject = authenticator([declared]);
  expect(declared.secret.every((byte) => byte === 0)).toBe(true);
  for (const text of ['first-static-token', 'unknown-static-token']) {
    const presented = Buffer.from(text);
    subject.authenticate({ kind: 'token', token: presented }, PEER);
    expect(presented.every((byte) => byte === 0)).toBe(true);
  }
  expect(ask(subject, 'Bearer first-static-token').kind).toBe('caller');
});

it('a policy nobody declared, one declared twice and a secret given twice are startup failures that name their place', () => {
  expect(() => authenticator([token('first-static-token', ['nope'])])).toThrow(/static_auth\.tokens\[0\].*nope/);
  expect(() => authenticator([], ['nope'])).toThrow(/static_auth\.anonymous.*nope/);
  expect(() =>
    authenticator([token('the-same-static-token', ['seal']), token('the-same-static-token', ['status'])]),
  ).toThrow(/static_auth\.tokens\[1\].*static:0/);
  const twice = { policies: [...POLICIES, ...POLICIES], anonymousPolicies: [], tokens: [] };
  expect(() => createStaticAuthenticator(twice)).toThrow(/twice/);
});

it('tokens that are declared anew replace the old ones, also for a request under way', () => {
  const subject = authenticator(
    [token('first-static-token', ['status']), token('second-static-token', ['seal'])],
    ['status'],
  );
  const callers = ['Bearer first-static-token', 'Bearer second-static-token', undefined].map((header) => {
    const answer = ask(subject, header);
    if (answer.kind !== 'caller') throw new Error(answer.reason);
    return answer.caller;
  });
  const [first, second, anonymous] = callers as [Caller, Caller, Caller];

  subject.replace({ policies: POLICIES, anonymousPolicies: [], tokens: [token('second-static-token', ['status'])] });

  expect(ask(subject, 'Bearer first-static-token')).toEqual(refused('invalid_token'));
  expect(subject.current(first, PEER)).toEqual(refused('invalid_token'));
  expect(subject.current(anonymous, PEER)).toEqual(refused('missing_credentials'));
  const now = subject.current(second, PEER);
  if (now.kind !== 'caller') throw new Error(now.reason);
  expect(evaluate(now.caller.access, { scope: 'chamber_seal' }).allowed).toBe(false);
  expect(evaluate(now.caller.access, { scope: 'chamber_status' }).allowed).toBe(true);
  expect(subject.current(now.caller, PEER)).toEqual(now);
});

it('source networks that were narrowed count for a request under way, of a token and of a client', () => {
  const certificate = shown('CN=teku');
  const from = (cidr: string) => {
    const boundCidrs = parseSafeCidrs([cidr]);
    if ('refused' in boundCidrs) throw new Error(boundCidrs.refused);
    return {
      policies: POLICIES,
      anonymousPolicies: [],
      tokens: [token('first-static-token', ['status'], [cidr])],
      clients: declareClients([{ ...known('CN=teku'), boundCidrs }]),
    };
  };
  const subject = createStaticAuthenticator(from('192.0.2.0/24'));
  const callers = [
    ask(subject, 'Bearer first-static-token'),
    subject.authenticate({ kind: 'none' }, PEER, certificate),
  ].map((answer) => (answer.kind === 'caller' ? answer.caller : expect.unreachable(answer.reason)));
  const [byToken, byCertificate] = callers as [Caller, Caller];
  expect(subject.current(byToken, PEER)).toEqual({ kind: 'caller', caller: byToken });
  expect(subject.current(byCertificate, PEER, certificate)).toEqual({ kind: 'caller', caller: byCertificate });

  subject.replace(from('198.51.100.0/24'));
  expect(subject.current(byToken, PEER)).toEqual(refused('peer_not_allowed'));
  expect(subject.current(byCertificate, PEER, certificate)).toEqual(refused('peer_not_allowed'));
  expect(subject.current(byToken, '198.51.100.7')).toMatchObject({ kind: 'caller' });
  expect(subject.current(byToken, undefined)).toEqual(refused('peer_not_allowed'));
});

it('what would not start a signer replaces nothing', () => {
  const subject = authenticator([token('first-static-token', ['status'])]);
  const broken = { policies: POLICIES, anonymousPolicies: [], tokens: [token('other-static-token', ['nowhere'])] };
  expect(() => subject.replace(broken)).toThrow('static_auth.tokens[0] names the policy nowhere');
  expect(ask(subject, 'Bearer first-static-token')).toMatchObject({ kind: 'caller' });
  expect(ask(subject, 'Bearer other-static-token')).toEqual(refused('invalid_token'));
});

/** What a handshake leaves of a certificate. */
function shown(subject: string, given: Partial<ClientCertificate> = {}): ClientCertificate {
  const always = (): boolean => true;
  return { subject, fingerprint: 'f', spkiSha256: undefined, isValidNow: always, isTrusted: always, ...given };
}

function known(subject: string, policies: readonly string[] = ['status']): StaticClient {
  return { name: subject.slice('CN='.length), match: { kind: 'subject', subject }, policies, boundCidrs: [] };
}

it('a certificate that is not good is never anonymous, and a good one is its client', () => {
  const clients = [known('CN=teku')];
  const subject = createStaticAuthenticator({
    policies: POLICIES,
    anonymousPolicies: ['seal'],
    tokens: [],
    clients: declareClients(clients),
  });
  const none = { kind: 'none' } as const;
  expect(subject.authenticate(none, PEER)).toMatchObject({ caller: { accessor: 'anonymous' } });
  expect(subject.authenticate(none, PEER, shown('CN=teku'))).toMatchObject({ caller: { accessor: 'client:teku' } });
  expect(subject.authenticate(none, PEER, shown('CN=other'))).toEqual(refused('client_certificate_unknown'));
  const untrusted = shown('CN=teku', { isTrusted: () => false });
  expect(subject.authenticate(none, PEER, untrusted)).toEqual(refused('client_certificate_untrusted'));
});

it('a request under way whose client is removed, or whose certificate ends, is refused', () => {
  const options = (clients: StaticClient[]) => ({
    policies: POLICIES,
    anonymousPolicies: [],
    tokens: [token('first-static-token', ['seal'])],
    clients: declareClients(clients),
  });
  const subject = createStaticAuthenticator(options([known('CN=teku')]));
  let isValid = true;
  const certificate = shown('CN=teku', { isValidNow: () => isValid });
  const callerOf = (outcome: Authentication): Caller =>
    outcome.kind === 'caller' ? outcome.caller : expect.unreachable(outcome.reason);
  const client = callerOf(subject.authenticate({ kind: 'none' }, PEER, certificate));
  const both = callerOf(
    subject.authenticate({ kind: 'token', token: Buffer.from('first-static-token') }, PEER, certificate),
  );
  expect(both.accessor).toBe('static:0');
  expect(subject.current(client, PEER, certificate)).toEqual({ kind: 'caller', caller: client });
  expect(subject.current(both, PEER, certificate)).toEqual({ kind: 'caller', caller: both });
  isValid = false;
  expect(subject.current(client, PEER, certificate)).toEqual(refused('client_certificate_expired'));
  expect(subject.current(both, PEER, certificate)).toEqual(refused('client_certificate_expired'));
  isValid = true;
  subject.replace(options([known('CN=teku', ['seal'])]));
  const now = callerOf(subject.current(client, PEER, certificate));
  expect(evaluate(now.access, { scope: 'chamber_seal' }).allowed).toBe(true);
  subject.replace(options([]));
  expect(subject.current(client, PEER, certificate)).toEqual(refused('client_certificate_unknown'));
  expect(subject.current(both, PEER, certificate)).toEqual(refused('client_certificate_unknown'));
  expect(subject.current(client, PEER)).toEqual(refused('missing_credentials'));
});

it('two clients that are known by the same, and one with a policy that is not there, are refused', () => {
  const start = (clients: StaticClient[]) => () =>
    createStaticAuthenticator({
      policies: POLICIES,
      anonymousPolicies: [],
      tokens: [],
      clients: declareClients(clients),
    });
  expect(start([known('CN=a'), known('CN=a')])).toThrow('is known by the same subject as client:a');
  expect(start([known('CN=a', ['none'])])).toThrow('the client a of tls.known_clients names the policy none');
});
