// The catalogue of scopes against what it describes: a running application, and the tree of operator commands. Every
// route is admitted by its scope alone, and refused by all others together, with the scope's name.

import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { walkDescriptions } from '../../common/command-line/command.ts';
import { describeGroup } from '../../common/command-line/program.ts';
import { OPERATOR_TREE } from '../../operator/tree.ts';
import { OPERATIONS, SCOPES, type Scope } from '../../signer/api/operations.ts';
import { SCOPE_CATALOGUE } from '../../signer/api/scope-catalogue.ts';
import { createStaticAuthenticator } from '../../signer/auth/static.ts';
import type { MountRoutes } from '../../signer/http/app.ts';
import { route } from '../../signer/metrics/entry.ts';
import { authorizationReference, SCOPE_COMMANDS } from '../../tools/reference/authorization.ts';
import { keylessApp } from '../support/auth-app.ts';
import { recordingLog } from '../support/recording-log.ts';

const KEY = `0x${'11'.repeat(48)}`;
const only = (scope: Scope) => `sr_client_TEST_only_${scope}`;
const allBut = (scope: Scope) => `sr_client_TEST_all_but_${scope}`;

let app: FastifyInstance;
beforeAll(async () => {
  const policies = SCOPES.flatMap((scope) => [
    { name: `only-${scope}`, rules: [{ effect: 'allow' as const, scopes: [scope] }] },
    {
      name: `all-but-${scope}`,
      rules: [{ effect: 'allow' as const, scopes: SCOPES.filter((other) => other !== scope) }],
    },
  ]);
  const tokens = SCOPES.flatMap((scope) => [
    { secret: Buffer.from(only(scope)), policies: [`only-${scope}`], boundCidrs: [] },
    { secret: Buffer.from(allBut(scope)), policies: [`all-but-${scope}`], boundCidrs: [] },
  ]);
  const authenticator = createStaticAuthenticator({ policies, tokens, anonymousPolicies: [] });
  const clock = { now: () => 0, monotonic: () => 0 };
  app = await keylessApp({ authenticator, clock, log: recordingLog() }, {}, { everyRoute: true });
});
afterAll(() => app.close());

async function refusalOf(route: string, token: string): Promise<{ reason?: string; message?: string }> {
  const [method = '', path = ''] = route.split(' ');
  const url = path.replace('{identifier}', KEY).replace('{boot}/{*}', `${'00'.repeat(16)}/identity`);
  const answer = await app.inject({
    method: method as 'GET',
    url,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { payload: 'not json' }),
  });
  return answer.statusCode < 400 ? {} : answer.json();
}

describe.each(SCOPES.flatMap((scope) => SCOPE_CATALOGUE[scope].routes.map((route) => [scope, route] as const)))(
  '%s at %s',
  (scope, route) => {
    it('is needed there, and is enough', async () => {
      expect((await refusalOf(route, only(scope))).reason).not.toBe('not_found');
      expect((await refusalOf(route, only(scope))).reason).not.toBe('denied');
      const asOthers = refusalOf(route, allBut(scope));
      // No error where clients expect the list of keys: the connection ends.
      if (/(publicKeys|accounts)$/.test(route)) return expect(asOthers).rejects.toThrow('destroyed');
      const others = await asOthers;
      // either of two scopes will do
      if (/(generate-keys|backups)$/.test(route)) return expect(others.reason).not.toBe('denied');
      expect(others.reason).toBe('denied');
      if (scope !== 'sign') expect(others.message).toContain(`the scope ${scope}`);
    });
  },
);

it('every route of the OpenAPI document that needs a scope is in the catalogue', async () => {
  const { paths } = (await app.inject('/api/openapi.json')).json() as { paths: Record<string, object> };
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  const listed = new Set(SCOPES.flatMap((scope) => SCOPE_CATALOGUE[scope].routes));
  const open = /^GET \/(upcheck|healthcheck|api\/openapi\.json|api\/v1\/attestation)$/;
  expect(documented.filter((route) => !listed.has(route) && !open.test(route))).toEqual([]);
  expect(documented.length).toBeGreaterThan(15);
});

it('every route is a value of the label route of the metrics, so none is counted as unknown', async () => {
  const { paths } = (await app.inject('/api/openapi.json')).json() as { paths: Record<string, object> };
  const patterns = Object.keys(paths).map((path) => path.replaceAll(/\{(\w+)\}/g, ':$1').replace('{*}', '*'));
  expect(patterns.filter((pattern) => !route.values.includes(pattern))).toEqual([]);
});

it('a route that the OpenAPI document would not describe stops the start of a service', async () => {
  const mountOwn: MountRoutes = (mounted) =>
    void mounted.get('/unknown', { config: { access: { kind: 'open' } } }, async () => 'OK');
  const authenticator = createStaticAuthenticator({ policies: [], tokens: [], anonymousPolicies: [] });
  const clock = { now: () => 0, monotonic: () => 0 };
  const started = keylessApp({ authenticator, clock, log: recordingLog(), mountOwn });
  await expect(started).rejects.toThrow('GET /unknown has no description');
});

it('every command that is named exists, and every command of keys, slashing and chamber is named', async () => {
  const commands = [...walkDescriptions(await describeGroup(OPERATOR_TREE))].flatMap(({ path, description }) =>
    description.commands === undefined ? [path.join(' ')] : [],
  );
  const named = Object.values(SCOPE_COMMANDS).flat();
  for (const command of named) expect(commands).toContain(command);
  const local = /^(auth |verify|keys split)/;
  for (const command of commands.filter((other) => !local.test(other))) expect(named).toContain(command);
});

it('the reference has every scope and operation', () => {
  const text = authorizationReference();
  for (const name of [...SCOPES, ...OPERATIONS]) expect(text).toContain(`\n- \`${name}\`: `);
});
