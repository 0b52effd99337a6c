// A state table and one replica that has read it, new for every test, and how a test issues tokens and asks what they
// may do. The tables of a file share a server. All keys are TEST keys.

import { beforeEach } from 'vitest';
import type { Policy, TokenRequest } from '../../../signer/api/policy.ts';
import { evaluate } from '../../../signer/auth/evaluate.ts';
import { createPolicy } from '../../../signer/auth/stateful/policies.ts';
import { issueToken, renewToken } from '../../../signer/auth/stateful/tokens.ts';
import { type AuthReplica, type AuthTable, authServerOfFile, openAuthReplica } from '../../support/stateful-auth.ts';

export const SIGNER: Policy = { name: 'signer', rules: [{ effect: 'allow', scopes: ['sign'] }] };
const SIGN = { scope: 'sign', publicKey: `0x${'11'.repeat(48)}`, operation: 'ATTESTATION' } as const;

const server = authServerOfFile();
export let table: AuthTable;
export let replica: AuthReplica;
export let root: string;

beforeEach(async () => {
  table = await server.createTable();
  replica = await openAuthReplica(table);
  root = accessorOf(replica, table.rootToken);
  await done(createPolicy(replica.auth, root, SIGNER));
});

export async function done<Answer>(
  outcome: Promise<{ kind: 'done'; answer: Answer } | { kind: 'refused'; reason: string }>,
): Promise<Answer> {
  const result = await outcome;
  if (result.kind === 'refused') throw new Error(`refused: ${result.reason}`);
  return result.answer;
}

export function issue(request: Partial<TokenRequest> = {}, { auth } = replica) {
  return done(
    issueToken(auth, root, { policies: ['signer'], bound_cidrs: [], management: false, ...request } as TokenRequest),
  );
}

export function outcomeOf({ authenticate }: AuthReplica, token: string, peer?: string): string {
  const outcome = authenticate(token, peer);
  return outcome.kind === 'caller' ? 'caller' : outcome.reason;
}

function accessorOf({ authenticate }: AuthReplica, token: string): string {
  const outcome = authenticate(token);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return outcome.caller.accessor;
}

export function maySign({ authenticate }: AuthReplica, token: string): boolean {
  const outcome = authenticate(token);
  return outcome.kind === 'caller' && evaluate(outcome.caller.access, SIGN).allowed;
}

export async function renewed(accessor: string, ttlSeconds?: number): Promise<number | null> {
  const { expires_at } = await done(renewToken(replica.auth, accessor, ttlSeconds));
  return expires_at === null ? null : (Date.parse(expires_at) - replica.clock.now()) / 1000;
}

export function credential(token: string) {
  return { kind: 'token', token: Buffer.from(token) } as const;
}
