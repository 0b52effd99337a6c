// Policies and requests of any kind, made at random: few keys, recipients and gas limits, so that rules and requests
// meet often.

import * as fc from 'fast-check';
import { OPERATIONS, PAYMENT_OPERATIONS } from '../../signer/api/operations.ts';
import type { Policy, Rule } from '../../signer/api/policy.ts';
import type { AccessRequest } from '../../signer/auth/evaluate.ts';
import type { Payment } from '../../signer/operations/row.ts';

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
/** Text, the same as bytes, and another. */
const BUILDERS = ['builder.example', `0x${Buffer.from('builder.example').toString('hex')}`, '0x00ff'];
const BUILDERS_ASKED = [BUILDERS[1] ?? '', '0x00ff', '0x'];
const BUILDER_INDICES = ['self', '0', '7'];
const INDICES_ASKED = [0n, 7n, 8n, 2n ** 64n - 1n];

type PaymentName = (typeof PAYMENT_OPERATIONS)[number];

function paymentFrom(operation: PaymentName, all: Required<Payment>): Payment {
  const { feeRecipient, gasLimit, builder, builderIndex } = all;
  if (operation === 'BUILDER_REQUEST_AUTH') return { builder };
  return operation === 'EXECUTION_PAYLOAD_ENVELOPE'
    ? { feeRecipient, gasLimit, builderIndex }
    : { feeRecipient, gasLimit };
}

const everyMember: fc.Arbitrary<Required<Payment>> = fc.record({
  feeRecipient: someRecipients,
  gasLimit: fc.constantFrom(...GAS_LIMITS),
  builder: fc.constantFrom(...BUILDERS_ASKED),
  builderIndex: fc.constantFrom(...INDICES_ASKED),
});
export const paymentsOf = (operation: PaymentName): fc.Arbitrary<Payment> =>
  everyMember.map((all) => paymentFrom(operation, all));

export const listOf = <Item>(item: fc.Arbitrary<Item>) => fc.uniqueArray(item, { minLength: 1, maxLength: 3 });

export const rule: fc.Arbitrary<Rule> = fc
  .record(
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
      builders: listOf(fc.constantFrom(...BUILDERS)),
      builder_indices: listOf(fc.constantFrom(...BUILDER_INDICES)),
      only_for_own_blocks: fc.constant(true as const),
    },
    { requiredKeys: ['effect'] },
  )
  .map((made) => fewConditions(made));

/** At most two of them, by what the rule has: more meet nothing. */
function fewConditions(made: Rule): Rule {
  const { fee_recipients, max_gas_limit, builders, builder_indices, only_for_own_blocks, ...rest } = made;
  const { keys = [], operations = [] } = rest;
  const paid = {
    ...(fee_recipients === undefined ? {} : { fee_recipients }),
    ...(max_gas_limit === undefined ? {} : { max_gas_limit }),
  };
  const own = only_for_own_blocks === undefined || rest.effect === 'deny' ? {} : { only_for_own_blocks };
  const indices = builder_indices === undefined ? {} : { builder_indices };
  switch ((keys.length + operations.length) % 4) {
    case 0:
      return { ...rest, ...paid };
    case 1:
      return { ...rest, ...(builders === undefined ? {} : { builders }) };
    case 2:
      return { ...rest, ...paid, ...indices };
    default:
      return { ...rest, ...indices, ...own };
  }
}

/** A rule as the table held it before rules knew of payments. */
export const olderRule: fc.Arbitrary<Rule> = rule.map(
  ({ fee_recipients: _r, max_gas_limit: _g, builders: _b, builder_indices: _i, only_for_own_blocks: _o, ...older }) =>
    older,
);
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
    everyMember,
  )
  .map(([request, all]) => {
    const { operation } = request;
    return isPayment(operation) ? { ...request, payment: paymentFrom(operation, all) } : request;
  });
/** One that states a payment, under any scope. */
export const paymentRequest: fc.Arbitrary<
  AccessRequest & { readonly operation: PaymentName; readonly payment: Payment }
> = fc.constantFrom(...PAYMENT_OPERATIONS).chain((operation) =>
  fc.record({
    scope: fc.constantFrom('sign' as const, 'sign' as const, 'public_keys' as const),
    publicKey: someKeys,
    operation: fc.constant(operation),
    payment: paymentsOf(operation),
  }),
);

function isPayment(operation: AccessRequest['operation']): operation is PaymentName {
  return PAYMENT_OPERATIONS.some((name) => name === operation);
}

/** Every message there may be, as far as rules can tell them apart. */
export const MESSAGES: readonly Pick<AccessRequest, 'operation' | 'payment'>[] = OPERATIONS.flatMap(messagesOf);

function messagesOf(operation: (typeof OPERATIONS)[number]): Pick<AccessRequest, 'operation' | 'payment'>[] {
  if (!isPayment(operation)) return [{ operation }];
  const everybody = [...RECIPIENTS, `0x${'dd'.repeat(20)}`];
  const [builder = '', builderIndex = 0n] = [BUILDERS_ASKED[0], INDICES_ASKED[0]];
  if (operation === 'BUILDER_REQUEST_AUTH') {
    return BUILDERS_ASKED.map((one) => ({ operation, payment: { builder: one } }));
  }
  const indices = operation === 'EXECUTION_PAYLOAD_ENVELOPE' ? INDICES_ASKED : [builderIndex];
  return everybody.flatMap((feeRecipient) =>
    GAS_LIMITS.flatMap((gasLimit) =>
      indices.map((one) => ({
        operation,
        payment: paymentFrom(operation, { feeRecipient, gasLimit, builder, builderIndex: one }),
      })),
    ),
  );
}
