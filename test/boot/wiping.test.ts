// Secrets of a configuration that was read again: whatever becomes of a reload, no copy stays behind.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { readKnownClients } from '../../service/known-clients.ts';
import { Reload } from '../../service/reload.ts';
import { createStaticAuthenticator } from '../../signer/auth/static.ts';
import { openAuthorization } from '../../signer/boot/authorization.ts';
import { Secret } from '../../signer/config/values/secret.ts';
import { load, loadGood } from '../config/loading.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { recordingLog } from '../support/recording-log.ts';

const TOKENS = ['first-static-token', 'second-static-token'];
const clock = { now: () => 0, monotonic: () => 0 };

afterEach(() => vi.restoreAllMocks());

function yamlOf(more = '', policies = 'policies: [{name: all, rules: [{effect: allow}]}]'): string {
  const tokens = TOKENS.map((secret) => `{secret: ${secret}, policies: [all]}`).join(', ');
  return `{static_auth: {${policies}, tokens: [${tokens}]}, key_sources: {memory: {persist_dir: /keys, persist_secret: the-secret-of-a-folder}}${more}}`;
}

function secretsMade(): Buffer[] {
  const made: Buffer[] = [];
  const { reveal } = Secret.prototype;
  vi.spyOn(Secret.prototype, 'reveal').mockImplementation(function (this: Secret) {
    const bytes = reveal.call(this);
    made.push(bytes);
    return bytes;
  });
  return made;
}

const isZero = (bytes: Buffer): boolean => bytes.every((byte) => byte === 0);

describe('declared tokens that are refused', () => {
  const policy = { name: 'all', rules: [{ effect: 'allow' as const }] };
  it.each([
    ['the same secret twice', [policy], ['all']],
    ['a policy that nobody declared', [policy], ['other']],
    ['a policy that is declared twice', [policy, policy], ['all']],
  ])('%s', (_name, policies, named) => {
    const secrets = ['same-static-token-1', 'same-static-token-1', 'third-static-token'].map((text) =>
      Buffer.from(text),
    );
    const tokens = secrets.map((secret) => ({ secret, policies: named, boundCidrs: [] }));
    expect(() => createStaticAuthenticator({ policies, anonymousPolicies: [], tokens })).toThrow();
    expect(secrets.map(isZero)).toEqual([true, true, true]);
  });

  it('beside a file of clients that is not there', async () => {
    const config = loadGood({ yaml: yamlOf() });
    const client = { name: 'c', file: '/nowhere/known-clients', policies: ['all'], bound_cidrs: [] };
    const withFile = { static_auth: config.static_auth, tls: { known_clients: [client] } };
    const parts = { custody: undefined, readKnownClients } as unknown as Parameters<typeof openAuthorization>[1];
    const opening = openAuthorization(withFile as never, parts, {} as never);
    await expect(opening).rejects.toThrow(/known-clients/);
    expect(config.static_auth.tokens.map(({ secret }) => isZero(secret.reveal()))).toEqual([true, true]);
  });
});

it('a configuration that is refused', () => {
  const made = secretsMade();
  expect(load({ yaml: yamlOf(', network: nowhere') }).ok).toBe(false);
  expect(made.length).toBeGreaterThanOrEqual(3);
  expect(made.every(isZero)).toBe(true);
});

it.each(['taken', 'refused'])('a reload whose tokens are %s', async (outcome) => {
  const config = loadGood({ yaml: yamlOf() });
  const again = load({ yaml: yamlOf() });
  if (!again.ok) throw new Error('the configuration is good');
  const secrets = [
    ...again.config.static_auth.tokens.map(({ secret }) => secret.reveal()),
    again.config.key_sources.memory.persist_secret?.reveal() ?? Buffer.of(1),
  ];
  expect(secrets.some(isZero)).toBe(false);
  const reload = new Reload({
    config,
    readConfiguration: () => again,
    replaceTokens: () => {
      if (outcome === 'refused') throw new Error('two tokens have the same secret');
    },
    reloadCertificate: async () => true,
    reloadKeys: async () => ({ failures: [] }) as never,
    clock,
    log: recordingLog(),
  });
  reload.begin();
  await vi.waitUntil(() => reload.status.status !== 'running', LONGEST_WAIT_MS);
  expect(secrets.every(isZero)).toBe(true);
});
