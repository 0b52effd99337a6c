// Creating, replacing and deleting policies (specification/authorization.md#auth-api). A policy that a live token is
// bound to stays: a deny rule must not vanish under a token.

import assert from 'node:assert/strict';
import type { PolicyRecord } from '../../api/auth.ts';
import type { Policy, Rule } from '../../api/policy.ts';
import { kindOf, pkOf, policyFields } from './rows.ts';
import { type AuthSnapshot, findPolicy, isExpired, policiesOf, policyRecord, tokensOf } from './snapshot.ts';
import { MAX_ALL_POLICIES_BYTES, MAX_POLICIES, MAX_POLICY_BYTES } from './state.ts';
import type { ChangeRefused, Done, StatefulAuthenticator } from './stateful.ts';
import type { AuthChange } from './write.ts';

const MAX_NAMED_TOKENS = 3;

export function createPolicy(
  auth: StatefulAuthenticator,
  accessor: string,
  { name, rules }: Policy,
): Promise<Done<PolicyRecord> | ChangeRefused> {
  return auth.change({ accessor, needsManagement: true }, (snapshot, now) => {
    if (findPolicy(snapshot, name) !== undefined) return refused('already_exists');
    const createdAt = new Date(now).toISOString();
    return putPolicy(snapshot, name, { createdAt, updatedAt: createdAt, rules });
  });
}

export function replacePolicy(
  auth: StatefulAuthenticator,
  accessor: string,
  { name, rules }: Policy,
): Promise<Done<PolicyRecord> | ChangeRefused> {
  return auth.change({ accessor, needsManagement: true }, (snapshot, now) => {
    const policy = findPolicy(snapshot, name);
    if (policy === undefined) return refused('not_found');
    return putPolicy(snapshot, name, { createdAt: policy.createdAt, updatedAt: new Date(now).toISOString(), rules });
  });
}

/**
 * Also deletes a policy whose row was altered or removed: a person who puts the row back does not revive the policy.
 */
export function deletePolicy(
  auth: StatefulAuthenticator,
  accessor: string,
  name: string,
): Promise<Done<undefined> | ChangeRefused> {
  return auth.change({ accessor, needsManagement: true }, (snapshot, now) => {
    const pk = pkOf('policy', name);
    if (!snapshot.manifest.rows.has(pk)) return refused('not_found');
    const bound = tokensOf(snapshot).filter((token) => token.policies.includes(name) && !isExpired(token, now));
    if (bound.length > 0) {
      const named = bound.slice(0, MAX_NAMED_TOKENS).map((token) => token.accessor);
      const more = bound.length > named.length ? ` and ${bound.length - named.length} more` : '';
      return refused('policy_in_use', `revoke ${named.join(', ')}${more} first`);
    }
    return { kind: 'change', puts: [], deletes: [pk], answer: () => undefined };
  });
}

function putPolicy(
  snapshot: AuthSnapshot,
  name: string,
  content: { readonly createdAt: string; readonly updatedAt: string; readonly rules: readonly Rule[] },
): AuthChange<PolicyRecord> | ChangeRefused {
  const pk = pkOf('policy', name);
  const fields = policyFields(content);
  const limitRefusal = limitOf(snapshot, pk, Buffer.byteLength(JSON.stringify(fields)));
  if (limitRefusal !== undefined) return limitRefusal;
  return {
    kind: 'change',
    puts: [{ pk, fields }],
    deletes: [],
    answer: (next) => {
      const policy = findPolicy(next, name);
      assert(policy !== undefined, 'a policy that was put is there');
      return policyRecord(policy);
    },
  };
}

function limitOf(snapshot: AuthSnapshot, pk: string, bytes: number): ChangeRefused | undefined {
  if (bytes > MAX_POLICY_BYTES) {
    return refused(
      'invalid_policy',
      `its rules take ${bytes} bytes and one policy holds ${MAX_POLICY_BYTES}, some 3,700 keys: split it into several ` +
        'policies and bind the token to all of them',
    );
  }
  const others = policiesOf(snapshot).filter((policy) => policy.pk !== pk);
  const total = others.reduce((sum, policy) => sum + policy.contentBytes, bytes);
  if (total > MAX_ALL_POLICIES_BYTES) {
    return refused('invalid_policy', `all policies together hold ${MAX_ALL_POLICIES_BYTES} bytes: delete some first`);
  }
  const named = [...snapshot.manifest.rows.keys()].filter((other) => kindOf(other) === 'policy' && other !== pk);
  if (named.length >= MAX_POLICIES) {
    return refused('invalid_policy', `there are ${MAX_POLICIES} policies already: delete some first`);
  }
  return undefined;
}

function refused(reason: ChangeRefused['reason'], hint?: string): ChangeRefused {
  return { kind: 'refused', reason, ...(hint === undefined ? {} : { hint }) };
}
