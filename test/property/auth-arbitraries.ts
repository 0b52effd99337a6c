// Policies and requests of any kind, made at random: few keys, recipients and gas limits, so that rules and requests
// meet often.

import * as fc from 'fast-check';
import { OPERATIONS, PAYMENT_OPERATIONS } from '../../enclave/api/operations.ts';
import type { Payment } from '../../enclave/api/payments.ts';
import type { Policy, Rule } from '../../enclave/api/policy.ts';
import type { AccessRequest } from '../../enclave/auth/evaluate.ts';

const KEYS = ['11', '22', '33'].map((byte) => `0x${byte.repeat(48)}`);

// Few names, so that rules meet requests often. chamber_seal acts on the whole signer, the others do not.
export const someScopes = fc.constantFrom(
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
export const someKeys = fc.constantFrom(...KEYS);
export const RECIPIENTS = ['aa', 'bb', 'cc'].map((byte) => `0x${byte.repeat(20)}`);
const someRecipients = fc.constantFrom(...RECIPIENTS);
const someGasLimits = fc.constantFrom(30_000_000, 36_000_000, 60_000_000);
/** On each limit, one above it, and where a number would lose digits. */
const GAS_LIMITS = [0n, 30_000_000n, 30_000_001n, 36_000_000n, 36_000_001n, 60_000_000n, 60_000_001n, 2n ** 64n - 1n];
export const somePayments: fc.Arbitrary<Payment> = fc.record({
  feeRecipient: someRecipients,
  gasLimit: fc.constantFrom(...GAS_LIMITS),
});

export const listOf = <Item>(item: fc.Arbitrary<Item>) => fc.uniqueArray(item, { minLength: 1, maxLength: 3 });

export const rule: fc.Arbitrary<Rule> = fc.record(
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
/** A rule as the table held it before rules knew of payments. */
export const olderRule: fc.Arbitrary<Rule> = rule.map(({ fee_recipients: _r, max_gas_limit: _g, ...older }) => older);
export const policiesOf = (someRule: fc.Arbitrary<Rule>): fc.Arbitrary<Policy[]> =>
  fc.array(fc.record({ name: fc.constantFrom('a', 'b'), rules: fc.array(someRule, { minLength: 1, maxLength: 4 }) }), {
    maxLength: 3,
  });
/** Most rules say nothing of payments, so that they meet other requests as often as before. */
export const policies = policiesOf(fc.oneof({ weight: 3, arbitrary: olderRule }, { weight: 1, arbitrary: rule }));
/** Exactly the messages of payment operations state a payment. */
export const request: fc.Arbitrary<AccessRequest> = fc
  .tuple(
    fc.record({ scope: someScopes, publicKey: someKeys, operation: someOperations }, { requiredKeys: ['scope'] }),
    somePayments,
  )
  .map(([request, payment]) => (statesPayment(request) ? { ...request, payment } : request));
/** One that states a payment, under any scope. */
export const paymentRequest: fc.Arbitrary<AccessRequest & { readonly payment: Payment }> = fc.record({
  scope: fc.constantFrom('sign' as const, 'sign' as const, 'public_keys' as const),
  publicKey: someKeys,
  operation: fc.constantFrom(...PAYMENT_OPERATIONS),
  payment: somePayments,
});

function statesPayment({ operation }: AccessRequest): boolean {
  return PAYMENT_OPERATIONS.some((name) => name === operation);
}

/** Every message there may be, as far as rules can tell them apart. */
export const MESSAGES: readonly Pick<AccessRequest, 'operation' | 'payment'>[] = OPERATIONS.flatMap((operation) => {
  if (!statesPayment({ scope: 'sign', operation })) return [{ operation }];
  const everybody = [...RECIPIENTS, `0x${'dd'.repeat(20)}`];
  return everybody.flatMap((feeRecipient) =>
    GAS_LIMITS.map((gasLimit) => ({ operation, payment: { feeRecipient, gasLimit } })),
  );
});
