// An oracle that reads specification/authorization.md#rules and #payments word by word and knows nothing of compiling;
// and beside it what the program decides.

import type { Policy, Rule } from '../../signer/api/policy.ts';
import {
  type AccessRequest,
  type CompiledAccess,
  compilePolicy,
  evaluate,
  joinAccess,
} from '../../signer/auth/evaluate.ts';

/**
 * "A rule matches when each of scopes, keys, operations that it states is met by the request", fee recipients and gas
 * limit "when their value is in the list, at most the limit; every other message does not meet a rule that states
 * them"; builders and builder indices alike.
 */
export function matches(rule: Rule, { scope, publicKey, operation, payment }: AccessRequest): boolean {
  const { feeRecipient, gasLimit, builder, builderIndex } = payment ?? {};
  const isEnvelope = operation === 'EXECUTION_PAYLOAD_ENVELOPE';
  if (rule.fee_recipients && !(feeRecipient && rule.fee_recipients.includes(feeRecipient))) return false;
  if (rule.max_gas_limit !== undefined && !(gasLimit !== undefined && gasLimit <= BigInt(rule.max_gas_limit)))
    return false;
  if (rule.builders && !rule.builders.some((one) => bytesOf(one) === builder)) return false;
  if (rule.builder_indices && !(isEnvelope && rule.builder_indices.some((one) => indexOf(one) === builderIndex)))
    return false;
  // Whether the block is the key's own is decided later.
  if (rule.only_for_own_blocks && !isEnvelope) return false;
  if (rule.scopes && !rule.scopes.includes(scope)) return false;
  if (rule.keys && (publicKey === undefined || !rule.keys.includes(publicKey))) return false;
  if (rule.operations && (operation === undefined || !rule.operations.includes(operation))) return false;
  return true;
}

function bytesOf(builder: string): string {
  return builder.startsWith('0x') ? builder : `0x${Buffer.from(builder).toString('hex')}`;
}

function indexOf(index: string): bigint {
  return index === 'self' ? 2n ** 64n - 1n : BigInt(index);
}

/** "Any matching deny beats every allow, across all policies; with no matching allow the answer is no." */
export function oracle(
  policies: readonly Policy[],
  request: AccessRequest,
): 'allow' | 'denied_by_rule' | 'no_matching_allow' {
  const matching = policies.flatMap((policy) => policy.rules).filter((rule) => matches(rule, request));
  if (matching.some((rule) => rule.effect === 'deny')) return 'denied_by_rule';
  return matching.some((rule) => rule.effect === 'allow') ? 'allow' : 'no_matching_allow';
}

export function compilePolicies(policies: readonly Policy[]): CompiledAccess {
  return joinAccess(policies.map(compilePolicy));
}

export function isAllowed(policies: readonly Policy[], request: AccessRequest): boolean {
  return evaluate(compilePolicies(policies), request).allowed;
}
