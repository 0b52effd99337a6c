// What a rule asks of a payment: who is paid, and how much gas at most (specification/authorization.md#payments). It
// trusts api/policy.ts and api/payments.ts for one spelling of addresses. A rule that states any of it is about
// payments alone: evaluate.ts lets it cover no other message.

import type { Payment } from '../api/payments.ts';
import type { Rule } from '../api/policy.ts';

export interface PaymentConditions {
  /** Canonical (formats/address.ts). Undefined: anybody. */
  readonly feeRecipients: ReadonlySet<string> | undefined;
  readonly maxGasLimit: bigint | undefined;
}

export type UnmetCondition = 'fee_recipient' | 'gas_limit';

/** Undefined when the rule asks nothing of payments. */
export function compilePayment({ fee_recipients, max_gas_limit }: Rule): PaymentConditions | undefined {
  if (fee_recipients === undefined && max_gas_limit === undefined) return undefined;
  return {
    feeRecipients: fee_recipients === undefined ? undefined : new Set(fee_recipients),
    maxGasLimit: max_gas_limit === undefined ? undefined : BigInt(max_gas_limit),
  };
}

/** Undefined when the payment meets all of them. The recipient first: where money goes is the graver mistake. */
export function unmetCondition(
  { feeRecipients, maxGasLimit }: PaymentConditions,
  { feeRecipient, gasLimit }: Payment,
): UnmetCondition | undefined {
  if (feeRecipients !== undefined && !feeRecipients.has(feeRecipient)) return 'fee_recipient';
  return maxGasLimit !== undefined && gasLimit > maxGasLimit ? 'gas_limit' : undefined;
}
