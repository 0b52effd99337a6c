// What a message says of its payment (specification/authorization.md#payments).

import { encodeHex } from '../../common/formats/hex.ts';
import type { Operation, PaymentOperation } from './operations.ts';
import type { SignRequest } from './sign-request.ts';

export interface Payment {
  readonly feeRecipient?: string;
  readonly gasLimit?: bigint;
  /** The bytes that name the builder, `0x` and lower-case hex. */
  readonly builder?: string;
  readonly builderIndex?: bigint;
}

export function paymentOf(request: SignRequest): Payment | undefined {
  switch (request.operation) {
    case 'PROPOSER_PREFERENCES':
      return paymentTo(request.message.fee_recipient, request.message.target_gas_limit);
    case 'VALIDATOR_REGISTRATION':
      return paymentTo(request.message.fee_recipient, request.message.gas_limit);
    case 'EXECUTION_PAYLOAD_ENVELOPE': {
      const { feeRecipient, gasLimit, builderIndex } = request.message;
      return { ...paymentTo(feeRecipient, gasLimit), builderIndex };
    }
    case 'BUILDER_REQUEST_AUTH':
      return { builder: encodeHex(request.message.data) };
    default:
      request.operation satisfies Exclude<Operation, PaymentOperation>;
      return undefined;
  }
}

function paymentTo(feeRecipient: Uint8Array, gasLimit: bigint): Payment {
  return { feeRecipient: encodeHex(feeRecipient), gasLimit };
}

const MAX_SHOWN_CHARACTERS = 128;

export function builderName(builder: string): string {
  const text = Buffer.from(builder.slice(2), 'hex').toString('latin1');
  const name = /^[\x21-\x7e]+$/.test(text) ? text : builder;
  return name.length > MAX_SHOWN_CHARACTERS ? `${name.slice(0, MAX_SHOWN_CHARACTERS)}…` : name;
}
