// The Auth API as its users see it (specification/authorization.md#auth-api): every answer and every refusal, decided
// before the body where the credential decides, each with its audit line, and a token shown exactly once.

import { describe, expect, it, vi } from 'vitest';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import {
  ABSENT,
  app,
  call,
  createPolicy,
  createToken,
  LOOKUP,
  POLICIES,
  RENEW,
  replica,
  root,
  serve,
  TOKENS,
} from './auth-api-requests.ts';

/** So many audit lines: a line is written when the answer has left, which the client may see a moment earlier. */
async function auditLines(count: number) {
  await vi.waitFor(() => expect(linesSoFar().length).toBeGreaterThanOrEqual(count), LONGEST_WAIT_MS);
  return linesSoFar();
}

function linesSoFar() {
  return replica.log.lines.filter(({ fields }) => fields['audit'] === true).map(({ fields }) => fields);
}

const MANAGEMENT_ROUTES = [
  ['GET', POLICIES],
  ['POST', POLICIES],
  ['GET', `${POLICIES}/signer`],
  ['PUT', `${POLICIES}/signer`],
  ['DELETE', `${POLICIES}/signer`],
  ['GET', TOKENS],
  ['POST', TOKENS],
  ['GET', `${TOKENS}/${ABSENT}`],
  ['DELETE', `${TOKENS}/${ABSENT}`],
] as const;

const OWN_ROUTES = [
  ['GET', LOOKUP],
  ['POST', RENEW],
] as const;

describe.each([...MANAGEMENT_ROUTES, ...OWN_ROUTES])('%s %s', (method, url) => {
  /** Larger than anything that is read, and not JSON: whoever refuses it has not looked. */
  const body = 'x'.repeat(100);

  it('refuses who has no valid token before the body is read', async () => {
    const unknown = `sr_mgmt_${'A'.repeat(43)}`;
    const refusals: readonly (readonly [object, number, string])[] = [
      [{ token: undefined }, 401, 'missing_credentials'],
      [{ token: undefined, headers: { authorization: 'Digest x' } }, 401, 'malformed_credentials'],
      [{ token: unknown }, 403, 'invalid_token'],
    ];
    for (const [options, status, reason] of refusals) {
      expect(await call(method, url, { ...options, body })).toMatchObject({ status, body: { code: status, reason } });
    }
  });

  it('answers 401 once it is sealed, to the root token too', async () => {
    replica.auth.seal();
    expect(await call(method, url, { body })).toMatchObject({ status: 401, body: { reason: 'auth_sealed' } });
  });

  it('refuses a body that is too large: 413', async () => {
    const headers = { 'content-length': String(2_097_153) };
    const answer = await call(method, url, { headers, body: method === 'GET' ? undefined : body });
    expect(answer).toMatchObject({ status: 413, body: { reason: 'body_too_large' } });
  });

  it('leaves one audit line that says who, what and how it ended, and no token', async () => {
    await call(method, url, { body: method === 'GET' ? undefined : body });
    const lines = await auditLines(1);
    expect(lines).toHaveLength(1);
    const accessor = replica.auth.snapshot.manifest.root?.replace('TOKEN#', '');
    expect(lines[0]).toMatchObject({ accessor, client_ip: '127.0.0.1', method, request_id: expect.any(String) });
    expect(lines[0]).toHaveProperty('duration_ms');
    expect(lines[0]?.['outcome']).toBe(lines[0]?.['reason'] === undefined ? 'ok' : 'refused');
    expect(JSON.stringify(replica.log.lines)).not.toContain(root);
  });
});

describe.each(MANAGEMENT_ROUTES)('%s %s', (method, url) => {
  it('is for management tokens: a client token gets 403 before the body is read, whatever its policies', async () => {
    await createPolicy('everything', [{ effect: 'allow' }]);
    const { token, accessor } = await createToken({ policies: ['everything'] });
    const answer = await call(method, url, { token, body: 'not JSON' });
    expect(answer).toMatchObject({ status: 403, body: { reason: 'denied' } });
    expect((await auditLines(3)).at(-1)).toMatchObject({ accessor, outcome: 'refused', reason: 'denied', status: 403 });
  });
});

describe('audit', () => {
  it('administration names its subject', async () => {
    await createPolicy();
    const { accessor, token } = await createToken();
    await call('POST', RENEW, { token });
    await call('DELETE', `${TOKENS}/${accessor}`);
    await call('DELETE', `${POLICIES}/signer`);
    expect(
      (await auditLines(5)).map(({ method, route, subject, outcome }) => [method, route, subject, outcome]),
    ).toEqual([
      ['POST', POLICIES, 'signer', 'ok'],
      ['POST', TOKENS, accessor, 'ok'],
      ['POST', RENEW, undefined, 'ok'],
      ['DELETE', `${TOKENS}/:accessor`, accessor, 'ok'],
      ['DELETE', `${POLICIES}/:name`, 'signer', 'ok'],
    ]);
  });
});

describe('other routes', () => {
  it('a management token without policies is admitted to no scope', async () => {
    expect(await call('GET', '/api/v1/eth2/highWatermark')).toMatchObject({ status: 403, body: { reason: 'denied' } });
  });

  it('a client token is admitted to the scopes of its policies, and after a change to those of the new rules', async () => {
    await createPolicy();
    const { token } = await createToken();
    const publicKeys = () => call('GET', '/api/v1/eth2/highWatermark', { token });
    expect(await publicKeys()).toMatchObject({ status: 200 });
    await call('PUT', `${POLICIES}/signer`, { body: { rules: [{ effect: 'allow', scopes: ['sign'] }] } });
    expect(await publicKeys()).toMatchObject({ status: 403, body: { reason: 'denied' } });
  });

  it('the OpenAPI document describes all of the Auth API', async () => {
    const { paths } = (await call('GET', '/api/openapi.json')).body;
    for (const [method, url] of [...MANAGEMENT_ROUTES, ...OWN_ROUTES]) {
      const path = url.replace(/signer$/, '{name}').replace(ABSENT, '{accessor}');
      expect(paths[path]?.[method.toLowerCase()]).toMatchObject({
        security: [{ bearer: [] }, { basic: [] }],
        responses: { 401: expect.anything(), 403: expect.anything() },
      });
    }
    expect(paths[POLICIES].post.responses).toHaveProperty('201');
  });

  it('the OpenAPI document says of an answer without a body that it has none', async () => {
    const { paths } = (await call('GET', '/api/openapi.json')).body;
    for (const path of [`${POLICIES}/{name}`, `${TOKENS}/{accessor}`])
      expect(paths[path].delete.responses['204']).toEqual({ description: 'Done' });
  });
});

describe('without the state table', () => {
  it('there is no Auth API', async () => {
    await app.close();
    await serve({ stateless: true });
    for (const [method, url] of [...MANAGEMENT_ROUTES, ...OWN_ROUTES]) {
      expect(await call(method, url)).toMatchObject({ status: 404, body: { reason: 'not_found' } });
    }
  });
});
