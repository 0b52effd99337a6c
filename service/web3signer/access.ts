// Who may call: Web3Signer asks no client who it is, unless it is given a file of known clients; then it asks for their
// certificates. It is the same here; a client of the file may do what any client may do otherwise.

import { resolve } from 'node:path';
import { type GivenOptions, isOn } from './given.ts';
import { KEY_MANAGER, SKIP_STORAGE } from './imported-keystores.ts';
import type { Translation } from './translation.ts';

export const POLICY = 'web3signer';
const KNOWN_CLIENTS = 'tls-known-clients-file';
const ANY_CLIENT = 'tls-allow-any-client';
const DEFAULT = 'default';
const KEY_MANAGER_SCOPES = ['list_keys', 'import_keystores', 'delete_keys'];

export function translateAccess(given: GivenOptions, folder: string, to: Translation): void {
  const hasKeyManager = isOn(given, KEY_MANAGER);
  const scopes = ['sign', 'public_keys', 'reload', ...(hasKeyManager ? KEY_MANAGER_SCOPES : [])];
  const policies = [{ name: POLICY, rules: [{ effect: 'allow', scopes }] }];
  const knownClients = given.get(KNOWN_CLIENTS);
  if (knownClients === undefined) {
    to.set('static_auth', { policies, anonymous: { policies: [POLICY] } }, DEFAULT);
  } else {
    to.set('static_auth', { policies }, DEFAULT);
    const file = resolve(folder, knownClients.value);
    to.set('tls.known_clients', [{ name: POLICY, file, policies: [POLICY] }], knownClients.origin);
    to.set('tls.client_auth', 'required', knownClients.origin);
  }
  if (knownClients !== undefined && isOn(given, ANY_CLIENT)) {
    const problem = `cannot be true beside --${KNOWN_CLIENTS}, as with Web3Signer`;
    const origin = given.get(ANY_CLIENT)?.origin ?? DEFAULT;
    to.refuse({ path: `--${ANY_CLIENT}`, problem, remedy: 'leave one of them out', origin });
  }
  to.set('http.key_manager_api.enabled', hasKeyManager, given.get(KEY_MANAGER)?.origin ?? DEFAULT);
  if (given.has(SKIP_STORAGE) && !hasKeyManager) to.warn(`--${SKIP_STORAGE}`, `does nothing without --${KEY_MANAGER}`);
}
