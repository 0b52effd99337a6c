// Rule evaluation against the oracle, and the laws that any evaluation has to keep: which rules widen access, in which
// order, and for which routes.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SCOPES } from '../../signer/api/operations.ts';
import type { Policy } from '../../signer/api/policy.ts';
import { admitsRoute, canSignWith, evaluate, evaluateBatch } from '../../signer/auth/evaluate.ts';
import {
  listOf,
  MESSAGES,
  olderRule,
  policies,
  policiesOf,
  request,
  rule,
  someKeys,
  someScopes,
} from './auth-arbitraries.ts';
import { compilePolicies, isAllowed, oracle } from './auth-oracle.ts';

it('evaluate answers as the oracle does, with the reason, and names a policy that does deny', () => {
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

it('adding a deny rule never widens access, adding an allow rule never narrows it, wherever it is added', () => {
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

it('the order of policies and of rules changes nothing', () => {
  fc.assert(
    fc.property(policies, request, (policies, request) => {
      const reversed = policies.map(({ name, rules }) => ({ name, rules: rules.toReversed() })).toReversed();
      expect(isAllowed(reversed, request)).toBe(isAllowed(policies, request));
    }),
  );
});

it('a key can be signed with exactly when it may be shown and some message may be signed', () => {
  const deniesNoPayment = fc.oneof(
    olderRule,
    rule.filter(({ effect }) => effect === 'allow'),
  );
  fc.assert(
    fc.property(policiesOf(deniesNoPayment), someKeys, (policies, publicKey) => {
      const shown = oracle(policies, { scope: 'public_keys', publicKey }) === 'allow';
      const signable = MESSAGES.some(
        (message) => oracle(policies, { scope: 'sign', publicKey, ...message }) === 'allow',
      );
      expect(canSignWith(compilePolicies(policies), publicKey)).toBe(shown && signable);
    }),
    { numRuns: 3000 },
  );
});

it('a batch is allowed exactly when every key of it is', () => {
  fc.assert(
    fc.property(policies, fc.array(someKeys), (policies, keys) => {
      const expected = keys.every((publicKey) => oracle(policies, { scope: 'delete_keys', publicKey }) === 'allow');
      expect(evaluateBatch(compilePolicies(policies), 'delete_keys', keys).allowed).toBe(expected);
    }),
  );
});

it('whoever may do something on a key under a scope is admitted to the routes of that scope', () => {
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

it('whoever is allowed a request without a key is admitted to its route', () => {
  fc.assert(
    fc.property(policies, fc.constantFrom(...SCOPES), (policies, scope) => {
      fc.pre(oracle(policies, { scope }) === 'allow');
      expect(admitsRoute(compilePolicies(policies), scope).allowed).toBe(true);
    }),
    { maxSkipsPerRun: 1000 },
  );
});

it('a deny rule without keys and operations closes the routes of its scopes', () => {
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
