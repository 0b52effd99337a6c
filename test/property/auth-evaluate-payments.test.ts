// The laws of rules about payments: what a condition may change, what it may not, and what is decided before the body
// of a request is read.

import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type Condition,
  conditionsOf,
  OPERATION_ENTRIES,
  OPERATIONS,
  type PAYMENT_OPERATIONS,
  SCOPES,
} from '../../signer/api/operations.ts';
import { policySchema, type Rule } from '../../signer/api/policy.ts';
import { type AccessRequest, admitsRoute, evaluate, evaluateBeforeBody } from '../../signer/auth/evaluate.ts';
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

it('of one operation, too: what may be an envelope has room before it is known which one it is', () => {
  const asked = fc.record({ scope: someScopes, publicKey: someKeys, operation: fc.constantFrom(...OPERATIONS) });
  fc.assert(
    fc.property(policiesOf(rule), asked, (policies, { scope, publicKey, operation }) => {
      const isAllowedAfterwards = MESSAGES.some(
        (message) => message.operation === operation && oracle(policies, { scope, publicKey, ...message }) === 'allow',
      );
      const access = compilePolicies(policies);
      const before = evaluateBeforeBody(access, { scope, publicKey, operation }).allowed;
      if (isAllowedAfterwards) expect(before).toBe(true);
      if (before) expect(evaluateBeforeBody(access, { scope, publicKey }).allowed).toBe(true);
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
      fc.pre(conditionsOf(added).length > 0);
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
      fc.pre(conditionsOf(added).length > 0);
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
    fc.property(
      policiesOf(olderRule),
      paymentRequest,
      fc.infiniteStream(paymentRequest),
      (policies, request, others) => {
        const payment = [...others.take(50)].find(({ operation }) => operation === request.operation)?.payment;
        const access = compilePolicies(policies);
        expect(evaluate(access, { ...request, payment })).toEqual(evaluate(access, request));
        expect(evaluate(access, { ...request, payment: undefined })).toEqual(evaluate(access, request));
      },
    ),
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
  const seen = { fee_recipient: 0, gas_limit: 0, builder: 0, builder_index: 0, none: 0 };
  fc.assert(
    fc.property(policiesOf(rule), paymentRequest, (policies, request) => {
      const decision = evaluate(compilePolicies(policies), request);
      fc.pre(!decision.allowed && decision.why === 'no_matching_allow');
      const unmet = !decision.allowed && decision.why === 'no_matching_allow' ? decision.unmet : undefined;
      // Rules that allow the message but for what they ask of its payment, and the first that each asks in vain.
      const failed = policies
        .flatMap(({ rules }) => rules)
        .filter((one) => one.effect === 'allow' && isAbout(one, request))
        .map((one) => ORDER.find((condition) => !matches(withOnly(one, condition), request)));
      const nearest = ORDER.findLast((condition) => failed.includes(condition));
      const expected = nearest === undefined ? undefined : UNMET[nearest];
      expect(unmet).toBe(expected);
      seen[expected ?? 'none'] += 1;
    }),
    { numRuns: 10_000 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(30);
});

const ORDER = ['fee_recipients', 'max_gas_limit', 'builders', 'builder_indices'] as const;
const UNMET = {
  fee_recipients: 'fee_recipient',
  max_gas_limit: 'gas_limit',
  builders: 'builder',
  builder_indices: 'builder_index',
} as const;

function withOnly(one: Rule, condition: (typeof ORDER)[number]): Rule {
  return { effect: one.effect, [condition]: one[condition] };
}

/** Whether it covers scope, key and operation, and asks something that the operation has. */
function isAbout(
  one: Rule,
  request: AccessRequest & { readonly operation: (typeof PAYMENT_OPERATIONS)[number] },
): boolean {
  const { effect, scopes, keys, operations } = one;
  const rest = { effect, ...(scopes && { scopes }), ...(keys && { keys }), ...(operations && { operations }) };
  const conditions = conditionsOf(one);
  const possible: readonly Condition[] = OPERATION_ENTRIES[request.operation].conditions;
  const isOf = (condition: Condition) => possible.includes(condition);
  return conditions.length > 0 && conditions.every(isOf) && matches(rest, request);
}
