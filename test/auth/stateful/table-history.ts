// A state table with a history: what every row and head once was, and what has become of them. Whoever imports it has
// one of its own in every test.

import { beforeEach } from 'vitest';
import { evaluate } from '../../../signer/auth/evaluate.ts';
import { createPolicy, replacePolicy } from '../../../signer/auth/stateful/policies.ts';
import { policyFields } from '../../../signer/auth/stateful/rows.ts';
import type { AuthHead, AuthRow } from '../../../signer/auth/stateful/state.ts';
import { issueToken, revokeToken } from '../../../signer/auth/stateful/tokens.ts';
import {
  type AuthReplica,
  type AuthTable,
  authServerOfFile,
  openAuthReplica,
  START,
} from '../../support/stateful-auth.ts';

export const SIGN = { scope: 'sign', publicKey: `0x${'11'.repeat(48)}`, operation: 'ATTESTATION' } as const;

export const ALLOW_ALL = policyFields({
  createdAt: new Date(START).toISOString(),
  updatedAt: new Date(START).toISOString(),
  rules: [{ effect: 'allow' }],
});

export const FORGED_KEY = Buffer.alloc(32, 0xee);

export const server = authServerOfFile();

/** A history: what every row and head once was, and what has become of them. */
export let table: AuthTable;

export let root: string;
export let wide: AuthRow;
export let client: { accessor: string; token: string };
export let revoked: { accessor: string; token: string };
export let revokedRow: AuthRow;
export let manager: { accessor: string; token: string };
export let oldHead: AuthHead;

beforeEach(async () => {
  table = await server.createTable();
  const { auth, authenticate } = await openAuthReplica(table);
  root = accessorOf(authenticate(table.rootToken));
  await createPolicy(auth, root, { name: 'signer', rules: [{ effect: 'allow' }] });
  await createPolicy(auth, root, { name: 'other', rules: [{ effect: 'allow', scopes: ['list_keys'] }] });
  wide = await table.row('POLICY#signer');
  client = await issue(auth, { policies: ['signer'] });
  revoked = await issue(auth, { policies: ['signer'] });
  manager = await issue(auth, { management: true, policies: ['other'] });
  revokedRow = await table.row(`TOKEN#${revoked.accessor}`);
  oldHead = await table.head();
  await replacePolicy(auth, root, { name: 'signer', rules: [{ effect: 'allow', scopes: ['public_keys'] }] });
  await revokeToken(auth, root, revoked.accessor);
});

export async function issue(auth: AuthReplica['auth'], request: { policies: string[]; management?: boolean }) {
  const outcome = await issueToken(auth, root, { bound_cidrs: [], management: false, ...request });
  if (outcome.kind === 'refused') throw new Error(outcome.hint);
  return outcome.answer;
}

export function accessorOf(outcome: ReturnType<AuthReplica['authenticate']>): string {
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return outcome.caller.accessor;
}

export interface Powers {
  readonly entersAs: 'caller' | string;
  readonly sign: boolean;
  readonly list: boolean;
  readonly management: boolean;
}

export function powers({ authenticate }: AuthReplica, token: string): Powers {
  const outcome = authenticate(token);
  if (outcome.kind === 'refused') return { entersAs: outcome.reason, sign: false, list: false, management: false };
  const { access, management } = outcome.caller;
  const may = (request: Parameters<typeof evaluate>[1]) => evaluate(access, request).allowed;
  return { entersAs: 'caller', sign: may(SIGN), list: may({ scope: 'list_keys' }), management };
}

export const NOTHING = { sign: false, list: false, management: false };

/** A change of an honest replica elsewhere, so that running ones read everything again. */
export async function honestChange(): Promise<void> {
  const { auth } = await openAuthReplica(table);
  const outcome = await createPolicy(auth, root, { name: `tick-${auth.revision}`, rules: [{ effect: 'deny' }] });
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
}
