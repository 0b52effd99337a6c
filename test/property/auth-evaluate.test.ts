// Rule evaluation against an oracle that reads decisions.md section 4 word by word and knows nothing of compiling, and
// the laws that any evaluation has to keep.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { OPERATIONS, SCOPES } from '../../enclave/api/operations.ts';
import type { Policy, Rule } from '../../enclave/api/policy.ts';
import {
  type AccessRequest,
  admitsRoute,
  canSignWith,
  compilePolicies,
  evaluate,
  evaluateBatch,
  evaluateBeforeBody,
} from '../../enclave/auth/evaluate.ts';

const KEYS = ['11', '22', '33'].map((byte) => `0x${byte.repeat(48)}`);

// Few names, so that rules meet requests often. chamber_seal acts on the whole signer, the others do not.
const someScopes = fc.constantFrom(
  'sign' as const,
  'public_keys' as const,
  'delete_keys' as const,
  'chamber_seal' as const,
);
const someOperations = fc.constantFrom('ATTESTATION' as const, 'BLOCK_V2' as const, 'VOLUNTARY_EXIT' as const);
const someKeys = fc.constantFrom(...KEYS);

const listOf = <Item>(item: fc.Arbitrary<Item>) => fc.uniqueArray(item, { minLength: 1, maxLength: 3 });

const rule: fc.Arbitrary<Rule> = fc.record(
  {
    effect: fc.oneof(
      { weight: 3, arbitrary: fc.constant('allow' as const) },
      { weight: 1, arbitrary: fc.constant('deny' as const) },
    ),
    scopes: listOf(someScopes),
    keys: listOf(someKeys),
    operations: listOf(someOperations),
  },
  { requiredKeys: ['effect'] },
);
const policies: fc.Arbitrary<Policy[]> = fc.array(
  fc.record({ name: fc.constantFrom('a', 'b'), rules: fc.array(rule, { minLength: 1, maxLength: 4 }) }),
  { maxLength: 3 },
);
const request: fc.Arbitrary<AccessRequest> = fc.record(
  { scope: someScopes, publicKey: someKeys, operation: someOperations },
  { requiredKeys: ['scope'] },
);

/** "A rule matches when each of scopes, keys, operations that it states is met by the request." */
function matches(rule: Rule, { scope, publicKey, operation }: AccessRequest): boolean {
  if (rule.scopes && !rule.scopes.includes(scope)) return false;
  if (rule.keys && (publicKey === undefined || !rule.keys.includes(publicKey))) return false;
  if (rule.operations && (operation === undefined || !rule.operations.includes(operation))) return false;
  return true;
}

/** "Any matching deny beats every allow, across all policies; with no matching allow the answer is no." */
function oracle(policies: readonly Policy[], request: AccessRequest): 'allow' | 'denied_by_rule' | 'no_matching_allow' {
  const matching = policies.flatMap((policy) => policy.rules).filter((rule) => matches(rule, request));
  if (matching.some((rule) => rule.effect === 'deny')) return 'denied_by_rule';
  return matching.some((rule) => rule.effect === 'allow') ? 'allow' : 'no_matching_allow';
}

function isAllowed(policies: readonly Policy[], request: AccessRequest): boolean {
  return evaluate(compilePolicies(policies), request).allowed;
}

test('evaluate answers as the oracle does, with the reason, and names a policy that does deny', () => {
  const seen = { allow: 0, denied_by_rule: 0, no_matching_allow: 0 };
  fc.assert(
    fc.property(policies, request, (policies, request) => {
      const decision = evaluate(compilePolicies(policies), request);
      const expected = oracle(policies, request);
      seen[expected] += 1;
      expect(decision.allowed ? 'allow' : decision.why).toBe(expected);
      const isDeny = !decision.allowed && decision.why === 'denied_by_rule';
      const named = policies.filter((policy) => isDeny && policy.name === decision.policy);
      expect(oracle(named, request) === 'denied_by_rule').toBe(isDeny);
    }),
    { numRuns: 5000 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(250);
});

test('adding a deny rule never widens access, adding an allow rule never narrows it, wherever it is added', () => {
  fc.assert(
    fc.property(policies, rule, fc.nat(), request, (policies, rule, position, request) => {
      const added: Policy = { name: 'added', rules: [rule] };
      const more = policies.toSpliced(position % (policies.length + 1), 0, added);
      const [before, after] = [isAllowed(policies, request), isAllowed(more, request)];
      expect(rule.effect === 'deny' ? !after || before : after || !before).toBe(true);
    }),
    { numRuns: 3000 },
  );
});

test('the order of policies and of rules changes nothing', () => {
  fc.assert(
    fc.property(policies, request, (policies, request) => {
      const reversed = policies.map(({ name, rules }) => ({ name, rules: rules.toReversed() })).toReversed();
      expect(isAllowed(reversed, request)).toBe(isAllowed(policies, request));
    }),
  );
});

test('before the body is read a request passes exactly when some operation would be allowed afterwards', () => {
  fc.assert(
    fc.property(policies, someScopes, someKeys, (policies, scope, publicKey) => {
      const possible = OPERATIONS.some((operation) => oracle(policies, { scope, publicKey, operation }) === 'allow');
      expect(evaluateBeforeBody(compilePolicies(policies), { scope, publicKey }).allowed).toBe(possible);
    }),
    { numRuns: 3000 },
  );
});

test('a key can be signed with exactly when it may be shown and some operation may be signed', () => {
  fc.assert(
    fc.property(policies, someKeys, (policies, publicKey) => {
      const shown = oracle(policies, { scope: 'public_keys', publicKey }) === 'allow';
      const signable = OPERATIONS.some(
        (operation) => oracle(policies, { scope: 'sign', publicKey, operation }) === 'allow',
      );
      expect(canSignWith(compilePolicies(policies), publicKey)).toBe(shown && signable);
    }),
    { numRuns: 3000 },
  );
});

test('a batch is allowed exactly when every key of it is', () => {
  fc.assert(
    fc.property(policies, fc.array(someKeys), (policies, keys) => {
      const expected = keys.every((publicKey) => oracle(policies, { scope: 'delete_keys', publicKey }) === 'allow');
      expect(evaluateBatch(compilePolicies(policies), 'delete_keys', keys).allowed).toBe(expected);
    }),
  );
});

test('whoever may do something on a key under a scope is admitted to the routes of that scope', () => {
  fc.assert(
    fc.property(
      policies,
      fc.constantFrom('public_keys' as const, 'delete_keys' as const),
      someKeys,
      (policies, scope, publicKey) => {
        fc.pre(oracle(policies, { scope, publicKey }) === 'allow');
        expect(admitsRoute(compilePolicies(policies), scope).allowed).toBe(true);
      },
    ),
  );
});

test('whoever is allowed a request without a key is admitted to its route', () => {
  fc.assert(
    fc.property(policies, fc.constantFrom(...SCOPES), (policies, scope) => {
      fc.pre(oracle(policies, { scope }) === 'allow');
      expect(admitsRoute(compilePolicies(policies), scope).allowed).toBe(true);
    }),
  );
});

test('a deny rule without keys and operations closes the routes of its scopes', () => {
  fc.assert(
    fc.property(policies, listOf(someScopes), (policies, scopes) => {
      const closed: Policy = { name: 'closed', rules: [{ effect: 'deny', scopes }] };
      const access = compilePolicies([...policies, closed]);
      for (const scope of scopes) {
        expect(admitsRoute(access, scope)).toMatchObject({ allowed: false, why: 'denied_by_rule' });
      }
    }),
  );
});
