// Client certificates against the real program, with TLS clients of Node and with curl: who is let in and why others
// are not, what a token beside a certificate means, and that nothing of a client outlives the reload that removed it
// (specification/authorization.md#client-certificates).

import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import type { Agent } from 'node:https';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunningSigner } from '../../rehearsal/signer.ts';
import { writeIssued } from '../support/client-certificates.ts';
import { call, TEST_TOKEN } from '../support/requests.ts';
import { tlsCall } from '../support/tls-call.ts';
import {
  answerOf,
  CERTIFICATE_HEADERS,
  client,
  files,
  folder,
  id,
  ids,
  knownClients,
  other,
  PATH,
  RELOADER,
  reloaded,
  resumedAnswer,
  resumes,
  sessionOf,
  started,
} from './client-certificates-set-up.ts';

describe('with tls.client_auth: optional', () => {
  let signer: RunningSigner;
  beforeAll(async () => {
    signer = await started(
      { client_ca: files.ca, known_clients: knownClients() },
      { server: { trust_proxy_headers: true, trusted_proxy_cidrs: ['127.0.0.0/8'] } },
    );
  });
  afterAll(async () => {
    await signer.stop();
  });
  const ask = (agent: Agent, headers: Record<string, string> = {}) =>
    tlsCall(`${signer.tlsUrl}${PATH}`, agent, headers);

  it.each([
    ['a subject under the CA', 'teku', 'client:teku'],
    ['a subject under an intermediate of it', 'chained', 'client:chained'],
    ['a certificate that states no usage', 'noUsage', 'client:teku'],
    ['a pinned key', 'pinned', 'client:ssv'],
    ['a pinned certificate', 'whole', 'client:whole'],
    ["a line of Web3Signer's file, whatever the case of its name", 'listed', 'client:fleet/listed'],
  ])('%s is let in, and the audit line names the client', async (_what, name, accessor) => {
    const headers = { 'x-request-id': `good ${name}` };
    expect(answerOf(await ask(client(id(name)), headers))).toEqual([200, undefined]);
    const line = await signer.logged('request', { request_id: headers['x-request-id'] });
    expect(line).toMatchObject({ accessor, outcome: 'ok', client_ip: '127.0.0.1' });
  });

  it.each([
    ['no certificate', undefined, 401, 'missing_credentials'],
    ['a certificate of another CA', 'wrongAuthority', 401, 'client_certificate_untrusted'],
    ['a self-signed one with a known subject', 'unpinned', 401, 'client_certificate_untrusted'],
    ['one that is for servers', 'wrongUsage', 401, 'client_certificate_untrusted'],
    ['a pin under another common name than its line', 'misnamed', 401, 'client_certificate_untrusted'],
    ['an expired one', 'expired', 401, 'client_certificate_expired'],
    ['an expired one that is pinned', 'pinnedExpired', 401, 'client_certificate_expired'],
    ['one of the CA that nobody is known by', 'stranger', 401, 'client_certificate_unknown'],
    ['a known one from outside its networks', 'elsewhere', 403, 'peer_not_allowed'],
  ])('%s is refused', async (_what, name, status, reason) => {
    expect(answerOf(await ask(client(name === undefined ? {} : id(name))))).toEqual([status, reason]);
  });

  it('a token is good without a certificate, with a good one, and with no other', async () => {
    const withToken = { authorization: `Bearer ${TEST_TOKEN}` };
    expect(answerOf(await ask(client(), withToken))).toEqual([200, undefined]);
    expect(answerOf(await ask(client(id('teku')), withToken))).toEqual([200, undefined]);
    for (const name of ['wrongAuthority', 'expired', 'stranger', 'elsewhere']) {
      expect((await ask(client(id(name)), withToken)).status).not.toBe(200);
    }
  });

  it('the token says what may be done, also less than the certificate alone may', async () => {
    const agent = client(id('teku'));
    const headers = { authorization: `Bearer ${RELOADER}`, 'x-request-id': 'both' };
    expect(answerOf(await ask(agent, headers))).toEqual([403, 'denied']);
    expect(await signer.logged('request', { request_id: 'both' })).toMatchObject({ accessor: 'static:reloader' });
    expect(answerOf(await ask(agent, { authorization: 'Bearer a-token-of-nobody-00000' }))).toEqual([
      403,
      'invalid_token',
    ]);
    expect(answerOf(await ask(agent, { authorization: 'Digest x' }))).toEqual([401, 'malformed_credentials']);
  });

  it('a proxy in between is who its certificate says, whatever it says of its clients', async () => {
    expect(answerOf(await ask(client(), CERTIFICATE_HEADERS))).toEqual([401, 'missing_credentials']);
    const headers = { ...CERTIFICATE_HEADERS, 'x-request-id': 'proxy' };
    expect(answerOf(await ask(client(id('stranger')), headers))).toEqual([401, 'client_certificate_unknown']);
    expect(answerOf(await ask(client(id('pinned')), headers))).toEqual([200, undefined]);
    const line = await signer.logged('request', { request_id: 'proxy', outcome: 'ok' });
    expect(line).toMatchObject({ accessor: 'client:ssv', client_ip: '192.0.2.1' });
  });

  it('nobody is known on the plain listener', async () => {
    const answer = await call(`${signer.url}${PATH}`, { token: null, headers: CERTIFICATE_HEADERS });
    expect(answer.status).toBe(401);
  });

  it('no line of the log has a certificate in it', () => {
    const text = JSON.stringify(signer.log);
    expect(text).not.toContain('BEGIN CERTIFICATE');
    for (const one of Object.values(ids)) expect(text).not.toContain(one.fingerprint);
  });

  it('curl is let in by its certificate, and told why not by another', async () => {
    const run = promisify(execFile);
    const curl = async (name: string) => {
      const { cert, key } = writeIssued(folder, name, id(name));
      const url = `${signer.tlsUrl}${PATH}`;
      const { stdout } = await run('curl', ['-sk', '--cert', cert, '--key', key, '-w', ' %{http_code}', url]);
      return stdout;
    };
    expect(await curl('teku')).toBe('{} 200');
    expect(await curl('wrongAuthority')).toMatch(/client_certificate_untrusted.* 401$/);
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('%s: no session is resumed', async (version) => {
    const session = await sessionOf(signer, id('teku'), version);
    expect(await resumes(signer, { session, version })).toBe(false);
  });

  // From here on the configuration changes.

  it('a client that is removed is refused at its next request on a connection that is kept', async () => {
    const [kept, pinned] = [client(id('teku')), client(id('pinned'))];
    expect((await ask(kept)).status).toBe(200);
    expect((await ask(pinned)).status).toBe(200);
    const sessions = await Promise.all(
      (['TLSv1.2', 'TLSv1.3'] as const).map((version) => sessionOf(signer, id('teku'), version)),
    );
    const names = ['chained', 'whole', 'far'];
    const remain = knownClients().filter(({ name }) => names.includes(name));
    expect(await reloaded(signer, (tls) => Object.assign(tls, { known_clients: remain }))).toMatchObject({
      status: 'completed',
    });
    const after = await ask(kept);
    expect([after.reused, ...answerOf(after)]).toEqual([true, 401, 'client_certificate_unknown']);
    expect(answerOf(await ask(pinned))).toEqual([401, 'client_certificate_untrusted']);
    for (const session of sessions) expect(await resumedAnswer(signer, session)).toContain('missing_credentials');
    expect((await ask(client(id('whole')))).status).toBe(200);
  });

  it('a CA that is replaced vouches for nobody from then on', async () => {
    const [kept, pinned] = [client(id('chained')), client(id('whole'))];
    expect((await ask(kept)).status).toBe(200);
    expect((await ask(pinned)).status).toBe(200);
    writeFileSync(files.ca, other.pem);
    await reloaded(signer, (tls) => {
      tls.known_clients.push({ name: 'late', subject: 'CN=teku,O=Example', policies: ['list'] });
    });
    expect(answerOf(await ask(kept))).toEqual([401, 'client_certificate_untrusted']);
    expect((await ask(pinned)).status).toBe(200);
    expect((await ask(client(id('wrongAuthority')))).status).toBe(200);
  });

  it('files that cannot be used change nothing', async () => {
    writeFileSync(files.ca, 'no certificate');
    writeFileSync(files.known, 'a line of nothing');
    const status = await reloaded(signer, (tls) => {
      tls.known_clients.push({ name: 'fleet', file: files.known, policies: ['list'] });
    });
    expect(status).toMatchObject({ status: 'completed_with_errors' });
    const refused = await signer.logged('the declared tokens are refused and stay as they were');
    expect(refused['error']).toBe(
      `tls.known_clients: ${files.known} line 1 is not a common name and the SHA-256 fingerprint of a certificate (COMMON-NAME AB:CD:…)`,
    );
    const unchanged = await signer.logged('TLS certificate not reloaded: the old one stays in force');
    expect(unchanged['error']).toBe(`tls.client_ca: ${files.ca} does not hold a PEM certificate`);
    expect((await ask(client(id('wrongAuthority')))).status).toBe(200);
    expect((await ask(client(id('whole')))).status).toBe(200);
    expect(answerOf(await ask(client(id('chained'))))).toEqual([401, 'client_certificate_untrusted']);
  });
});

describe('with tls.client_auth: required', () => {
  let signer: RunningSigner;
  beforeAll(async () => {
    const clients = [{ name: 'ssv', spki_sha256: id('pinned').spkiSha256, policies: ['list'] }];
    signer = await started({ client_auth: 'required', known_clients: clients });
  });
  afterAll(async () => {
    await signer.stop();
  });

  it('a known client is served, probes too', async () => {
    const agent = client(id('pinned'));
    expect((await tlsCall(`${signer.tlsUrl}${PATH}`, agent)).status).toBe(200);
    expect((await tlsCall(`${signer.tlsUrl}/upcheck`, agent)).status).toBe(200);
  });

  it.each([
    ['no certificate', undefined, 'missing_credentials'],
    ['another one', 'teku', 'client_certificate_untrusted'],
  ])('a connection with %s ends before its first request, with a token or without', async (_what, name, reason) => {
    const identity = name === undefined ? {} : id(name);
    for (const headers of [{}, { authorization: `Bearer ${TEST_TOKEN}` }] as Record<string, string>[]) {
      await expect(tlsCall(`${signer.tlsUrl}/upcheck`, client(identity), headers)).rejects.toThrow();
    }
    await signer.logged('connection refused: tls.client_auth is required', { reason, client_ip: '127.0.0.1' });
  });
});
