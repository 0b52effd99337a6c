// The laws of rules about payments: what a condition may change, what it may not, and what is decided before the body
// of a request is read.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { SCOPES } from '../../enclave/api/operations.ts';
import { policySchema, type Rule } from '../../enclave/api/policy.ts';
import { admitsRoute, evaluate, evaluateBeforeBody } from '../../enclave/auth/evaluate.ts';
import {
  MESSAGES,
  olderRule,
  paymentRequest,
  policies,
  policiesOf,
  RECIPIENTS,
  request,
  rule,
  someKeys,
  somePayments,
  someScopes,
} from './auth-arbitraries.ts';
import { compilePolicies, isAllowed, matches, oracle } from './auth-oracle.ts';

it('before the body is read a request passes exactly when some message would be allowed afterwards', () => {
  const deniesNoPayment = fc.oneof(
    olderRule,
    rule.filter(({ effect }) => effect === 'allow'),
  );
  fc.assert(
    fc.property(policiesOf(deniesNoPayment), someScopes, someKeys, (policies, scope, publicKey) => {
      const possible = MESSAGES.some((message) => oracle(policies, { scope, publicKey, ...message }) === 'allow');
      expect(evaluateBeforeBody(compilePolicies(policies), { scope, publicKey }).allowed).toBe(possible);
    }),
    { numRuns: 3000 },
  );
});

it('before the body is read no request is refused that would be allowed afterwards, whatever deny rules say of payments', () => {
  fc.assert(
    fc.property(policiesOf(rule), someScopes, someKeys, (policies, scope, publicKey) => {
      fc.pre(MESSAGES.some((message) => oracle(policies, { scope, publicKey, ...message }) === 'allow'));
      expect(evaluateBeforeBody(compilePolicies(policies), { scope, publicKey })).toEqual({ allowed: true });
    }),
    { numRuns: 3000 },
  );
});

it('a deny rule about payments refuses nothing before the body is read', () => {
  fc.assert(
    fc.property(policies, rule, someScopes, someKeys, (policies, added, scope, publicKey) => {
      fc.pre(added.fee_recipients !== undefined || added.max_gas_limit !== undefined);
      const access = compilePolicies([...policies, { name: 'added', rules: [{ ...added, effect: 'deny' }] }]);
      expect(evaluateBeforeBody(access, { scope, publicKey })).toEqual(
        evaluateBeforeBody(compilePolicies(policies), { scope, publicKey }),
      );
    }),
    { numRuns: 2000 },
  );
});

it('a condition that is added to an allow rule never permits more, added to a deny rule never denies more', () => {
  fc.assert(
    fc.property(policies, olderRule, rule, request, (policies, older, other, request) => {
      const { fee_recipients = RECIPIENTS.slice(0, 1), max_gas_limit = 30_000_000 } = other;
      for (const condition of [{ fee_recipients }, { max_gas_limit }, { fee_recipients, max_gas_limit }]) {
        const before = isAllowed([...policies, { name: 'added', rules: [older] }], request);
        const after = isAllowed([...policies, { name: 'added', rules: [{ ...older, ...condition }] }], request);
        expect(older.effect === 'allow' ? before || !after : after || !before).toBe(true);
      }
    }),
    { numRuns: 3000 },
  );
});

it('a condition that is added to an allow rule opens no route and lets no body in that was refused', () => {
  fc.assert(
    fc.property(policies, olderRule, fc.constantFrom(...SCOPES), someKeys, (policies, older, scope, publicKey) => {
      const allow: Rule = { ...older, effect: 'allow' };
      const access = (added: Rule) => compilePolicies([...policies, { name: 'added', rules: [added] }]);
      const [before, after] = [access(allow), access({ ...allow, fee_recipients: RECIPIENTS })];
      expect(admitsRoute(before, scope).allowed || !admitsRoute(after, scope).allowed).toBe(true);
      const admits = (rules: typeof before) => evaluateBeforeBody(rules, { scope, publicKey }).allowed;
      expect(admits(before) || !admits(after)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it('a rule that states fee recipients or a gas limit is nothing to a message that has neither', () => {
  fc.assert(
    fc.property(policies, rule, fc.nat(), request, (policies, added, position, request) => {
      fc.pre(request.payment === undefined);
      fc.pre(added.fee_recipients !== undefined || added.max_gas_limit !== undefined);
      const more = policies.toSpliced(position % (policies.length + 1), 0, { name: 'added', rules: [added] });
      expect(evaluate(compilePolicies(more), request)).toEqual(evaluate(compilePolicies(policies), request));
      expect(admitsRoute(compilePolicies(more), request.scope)).toEqual(
        admitsRoute(compilePolicies(policies), request.scope),
      );
    }),
    { numRuns: 3000 },
  );
});

it('what rules without conditions decide does not depend on where a payment goes', () => {
  fc.assert(
    fc.property(policiesOf(olderRule), paymentRequest, somePayments, (policies, request, payment) => {
      const access = compilePolicies(policies);
      expect(evaluate(access, { ...request, payment })).toEqual(evaluate(access, request));
      expect(evaluate(access, { ...request, payment: undefined })).toEqual(evaluate(access, request));
    }),
    { numRuns: 2000 },
  );
});

it('the order, the case and the prefix of addresses change nothing', () => {
  const spellings = [
    (address: string) => address,
    (address: string) => `0x${address.slice(2).toUpperCase()}`,
    (address: string) => address.slice(2),
    (address: string) => address.slice(2).toUpperCase(),
  ];
  fc.assert(
    fc.property(policies, fc.array(fc.nat(3), { minLength: 1 }), paymentRequest, (policies, picks, request) => {
      const respelt = policies.map(({ name, rules }) => ({
        name,
        rules: rules.map((rule) => {
          const recipients = rule.fee_recipients?.toReversed();
          if (recipients === undefined) return rule;
          const spell = (address: string, at: number) => spellings[picks[at % picks.length] ?? 0]?.(address);
          return { ...rule, fee_recipients: recipients.map(spell) };
        }),
      }));
      const parsed = respelt.map((policy) => policySchema.parse(policy));
      expect(evaluate(compilePolicies(parsed), request)).toEqual(evaluate(compilePolicies(policies), request));
    }),
    { numRuns: 2000 },
  );
});

it('a refused payment is told the condition that a rule about it has, and of no rule that is not about it', () => {
  const seen = { fee_recipient: 0, gas_limit: 0, none: 0 };
  fc.assert(
    fc.property(policies, paymentRequest, (policies, request) => {
      const decision = evaluate(compilePolicies(policies), request);
      fc.pre(!decision.allowed && decision.why === 'no_matching_allow');
      const unmet = !decision.allowed && decision.why === 'no_matching_allow' ? decision.unmet : undefined;
      const about = policies
        .flatMap(({ rules }) => rules)
        .filter(
          ({ effect, fee_recipients: _r, max_gas_limit: _g, ...rest }) =>
            matches({ effect, ...rest }, request) && effect === 'allow',
        );
      const paysWell = about.some(
        ({ fee_recipients }) => fee_recipients?.includes(request.payment.feeRecipient) ?? true,
      );
      const expected = about.length === 0 ? undefined : paysWell ? 'gas_limit' : 'fee_recipient';
      expect(unmet).toBe(expected);
      seen[expected ?? 'none'] += 1;
    }),
    { numRuns: 5000 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
});
