// What a rule asks of a payment (specification/authorization.md#payments). A rule that states any of it covers no other
// message. Whether an envelope is for a block of its own key is asked in signing/sign.ts.

import { conditionsOf } from '../api/operations.ts';
import type { Payment } from '../api/payments.ts';
import { builderBytes, builderIndexNumber, type Rule } from '../api/policy.ts';

export interface PaymentConditions {
  /** Canonical (common/formats/address.ts). Undefined, like the others: anybody. */
  readonly feeRecipients: ReadonlySet<string> | undefined;
  readonly maxGasLimit: bigint | undefined;
  readonly builders: ReadonlySet<string> | undefined;
  readonly builderIndices: ReadonlySet<bigint> | undefined;
  readonly onlyForOwnBlocks: boolean;
}

/** In the order in which they are asked: where money goes is the gravest mistake. */
const UNMET_CONDITIONS = ['fee_recipient', 'gas_limit', 'builder', 'builder_index'] as const;

export type UnmetCondition = (typeof UNMET_CONDITIONS)[number];

export function compilePayment(rule: Rule): PaymentConditions | undefined {
  if (conditionsOf(rule).length === 0) return undefined;
  const { fee_recipients, max_gas_limit, builders, builder_indices, only_for_own_blocks } = rule;
  return {
    feeRecipients: fee_recipients && new Set(fee_recipients),
    maxGasLimit: max_gas_limit === undefined ? undefined : BigInt(max_gas_limit),
    builders: builders && new Set(builders.map(builderBytes)),
    builderIndices: builder_indices && new Set(builder_indices.map(builderIndexNumber)),
    onlyForOwnBlocks: only_for_own_blocks === true,
  };
}

export function unmetCondition(
  { feeRecipients, maxGasLimit, builders, builderIndices }: PaymentConditions,
  { feeRecipient, gasLimit, builder, builderIndex }: Payment,
): UnmetCondition | undefined {
  if (!isIn(feeRecipients, feeRecipient)) return 'fee_recipient';
  if (maxGasLimit !== undefined && (gasLimit === undefined || gasLimit > maxGasLimit)) return 'gas_limit';
  if (!isIn(builders, builder)) return 'builder';
  return isIn(builderIndices, builderIndex) ? undefined : 'builder_index';
}

export function nearestUnmet(unmet: ReadonlySet<UnmetCondition>): UnmetCondition | undefined {
  return UNMET_CONDITIONS.findLast((condition) => unmet.has(condition));
}

function isIn<Value>(allowed: ReadonlySet<Value> | undefined, value: Value | undefined): boolean {
  return allowed === undefined || (value !== undefined && allowed.has(value));
}
