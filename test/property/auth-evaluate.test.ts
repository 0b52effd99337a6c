// Rule evaluation against an oracle that reads specification/authorization.md#rules and #payments, word by
// word and knows nothing of compiling, and the laws that any evaluation has to keep.

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { OPERATIONS, PAYMENT_OPERATIONS, SCOPES } from '../../enclave/api/operations.ts';
import type { Payment } from '../../enclave/api/payments.ts';
import { type Policy, policySchema, type Rule } from '../../enclave/api/policy.ts';
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
const someOperations = fc.constantFrom(
  'ATTESTATION' as const,
  'BLOCK_V2' as const,
  'VOLUNTARY_EXIT' as const,
  ...PAYMENT_OPERATIONS,
);
const someKeys = fc.constantFrom(...KEYS);
const RECIPIENTS = ['aa', 'bb', 'cc'].map((byte) => `0x${byte.repeat(20)}`);
const someRecipients = fc.constantFrom(...RECIPIENTS);
const someGasLimits = fc.constantFrom(30_000_000, 36_000_000, 60_000_000);
/** On each limit, one above it, and where a number would lose digits. */
const GAS_LIMITS = [0n, 30_000_000n, 30_000_001n, 36_000_000n, 36_000_001n, 60_000_000n, 60_000_001n, 2n ** 64n - 1n];
const somePayments: fc.Arbitrary<Payment> = fc.record({
  feeRecipient: someRecipients,
  gasLimit: fc.constantFrom(...GAS_LIMITS),
});

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
    fee_recipients: listOf(someRecipients),
    max_gas_limit: someGasLimits,
  },
  { requiredKeys: ['effect'] },
);
/** As stored before rules knew of payments. */
const olderRule: fc.Arbitrary<Rule> = rule.map(({ fee_recipients: _r, max_gas_limit: _g, ...older }) => older);
const policiesOf = (someRule: fc.Arbitrary<Rule>): fc.Arbitrary<Policy[]> =>
  fc.array(fc.record({ name: fc.constantFrom('a', 'b'), rules: fc.array(someRule, { minLength: 1, maxLength: 4 }) }), {
    maxLength: 3,
  });
/** Most rules say nothing of payments, so that they meet other requests as often as before. */
const policies = policiesOf(fc.oneof({ weight: 3, arbitrary: olderRule }, { weight: 1, arbitrary: rule }));
/** Exactly the messages of payment operations state a payment. */
const request: fc.Arbitrary<AccessRequest> = fc
  .tuple(
    fc.record({ scope: someScopes, publicKey: someKeys, operation: someOperations }, { requiredKeys: ['scope'] }),
    somePayments,
  )
  .map(([request, payment]) => (statesPayment(request) ? { ...request, payment } : request));
/** One that states a payment, under any scope. */
const paymentRequest: fc.Arbitrary<AccessRequest & { readonly payment: Payment }> = fc.record({
  scope: fc.constantFrom('sign' as const, 'sign' as const, 'public_keys' as const),
  publicKey: someKeys,
  operation: fc.constantFrom(...PAYMENT_OPERATIONS),
  payment: somePayments,
});

function statesPayment({ operation }: AccessRequest): boolean {
  return PAYMENT_OPERATIONS.some((name) => name === operation);
}

/** Every message there may be, as far as rules can tell them apart. */
const MESSAGES: readonly Pick<AccessRequest, 'operation' | 'payment'>[] = OPERATIONS.flatMap((operation) => {
  if (!statesPayment({ scope: 'sign', operation })) return [{ operation }];
  const everybody = [...RECIPIENTS, `0x${'dd'.repeat(20)}`];
  return everybody.flatMap((feeRecipient) =>
    GAS_LIMITS.map((gasLimit) => ({ operation, payment: { feeRecipient, gasLimit } })),
  );
});

/**
 * "A rule matches when each of scopes, keys, operations that it states is met by the request", fee recipients and gas
 * limit "when their value is in the list, at most the limit; every other message does not meet a rule that states
 * them".
 */
function matches(rule: Rule, { scope, publicKey, operation, payment }: AccessRequest): boolean {
  if (rule.fee_recipients && !(payment && rule.fee_recipients.includes(payment.feeRecipient))) return false;
  if (rule.max_gas_limit !== undefined && !(payment && payment.gasLimit <= BigInt(rule.max_gas_limit))) return false;
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

test('before the body is read a request passes exactly when some message would be allowed afterwards', () => {
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

test('before the body is read no request is refused that would be allowed afterwards, whatever deny rules say of payments', () => {
  fc.assert(
    fc.property(policiesOf(rule), someScopes, someKeys, (policies, scope, publicKey) => {
      fc.pre(MESSAGES.some((message) => oracle(policies, { scope, publicKey, ...message }) === 'allow'));
      expect(evaluateBeforeBody(compilePolicies(policies), { scope, publicKey })).toEqual({ allowed: true });
    }),
    { numRuns: 3000 },
  );
});

test('a deny rule about payments refuses nothing before the body is read', () => {
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

test('a condition that is added to an allow rule never permits more, added to a deny rule never denies more', () => {
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

test('a condition that is added to an allow rule opens no route and lets no body in that was refused', () => {
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

test('a rule that states fee recipients or a gas limit is nothing to a message that has neither', () => {
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

test('what rules without conditions decide does not depend on where a payment goes', () => {
  fc.assert(
    fc.property(policiesOf(olderRule), paymentRequest, somePayments, (policies, request, payment) => {
      const access = compilePolicies(policies);
      expect(evaluate(access, { ...request, payment })).toEqual(evaluate(access, request));
      expect(evaluate(access, { ...request, payment: undefined })).toEqual(evaluate(access, request));
    }),
    { numRuns: 2000 },
  );
});

test('the order, the case and the prefix of addresses change nothing', () => {
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

test('a refused payment is told the condition that a rule about it has, and of no rule that is not about it', () => {
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

test('a key can be signed with exactly when it may be shown and some message may be signed', () => {
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
    { maxSkipsPerRun: 1000 },
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
