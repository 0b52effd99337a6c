// Where a message says that a proposer is paid, and how much gas its block may use: what rules with `fee_recipients`
// and `max_gas_limit` are held to (specification/authorization.md#payments). A payment operation without a case here
// does not compile.

import { encodeHex } from '../../formats/hex.ts';
import type { Operation, PaymentOperation } from './operations.ts';
import type { SignRequest } from './sign-request.ts';

export interface Payment {
  /** Canonical spelling (formats/address.ts). */
  readonly feeRecipient: string;
  readonly gasLimit: bigint;
}

/** Undefined exactly when the operation is none of the payment operations. */
export function paymentOf(request: SignRequest): Payment | undefined {
  switch (request.operation) {
    case 'PROPOSER_PREFERENCES':
      return paymentTo(request.message.fee_recipient, request.message.target_gas_limit);
    case 'VALIDATOR_REGISTRATION':
      return paymentTo(request.message.fee_recipient, request.message.gas_limit);
    default:
      request.operation satisfies Exclude<Operation, PaymentOperation>;
      return undefined;
  }
}

function paymentTo(feeRecipient: Uint8Array, gasLimit: bigint): Payment {
  return { feeRecipient: encodeHex(feeRecipient), gasLimit };
}
