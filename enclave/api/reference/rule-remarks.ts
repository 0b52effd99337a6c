// What rules say and their author can hardly have meant: valid, and worth a remark where they are written (the
// configuration, `operator auth policy`). Nothing is refused for it, and no decision is taken here.

import { PAYMENT_OPERATIONS, type PaymentOperation } from '../operations.ts';
import type { Rule } from '../policy.ts';

/** @returns what is odd about the rules, each as a sentence without its end; rules are counted from 1 */
export function remarksOn(rules: readonly Rule[]): string[] {
  return [...paymentRemarksOn(rules), ...scopeRemarksOn(rules)];
}

/** A stated operation is not met by a request that has none (specification/authorization.md#rules). */
export function scopeRemarksOn(rules: readonly Rule[]): string[] {
  return rules.flatMap(({ scopes = [], operations }, index) => {
    const without = operations === undefined ? [] : scopes.filter((scope) => scope !== SCOPE_OF_OPERATIONS);
    if (without.length === 0) return [];
    const effect = without.length === scopes.length ? 'it matches nothing' : 'it says nothing about them';
    return [
      `rule ${index + 1} states operations, and requests of ${without.join(', ')} have none, so ${effect}: write a rule ` +
        'without operations for them',
    ];
  });
}

/** The only one whose requests have an operation. */
const SCOPE_OF_OPERATIONS = 'sign';

export function paymentRemarksOn(rules: readonly Rule[]): string[] {
  const open = rules.filter((rule) => rule.effect === 'allow' && !isAboutPayments(rule));
  return rules.flatMap((rule, index) => {
    if (!isAboutPayments(rule)) return [];
    const subject = `rule ${index + 1} states fee_recipients or max_gas_limit, and`;
    if (paymentsOf(rule).length === 0) {
      return [`${subject} its scopes or operations leave none of ${PAYMENT_OPERATIONS.join(', ')}: it matches nothing`];
    }
    const wider = rule.effect === 'allow' ? open.find((other) => overlaps(rule, other)) : undefined;
    if (wider === undefined) return [];
    const number = rules.indexOf(wider) + 1;
    return [
      `${subject} rule ${number} allows the same without: leave the payments out of the operations of rule ${number}`,
    ];
  });
}

function isAboutPayments({ fee_recipients, max_gas_limit }: Rule): boolean {
  return fee_recipients !== undefined || max_gas_limit !== undefined;
}

/** The payment operations that the rule covers. */
function paymentsOf({ scopes, operations }: Rule): readonly PaymentOperation[] {
  if (scopes !== undefined && !scopes.includes('sign')) return [];
  return PAYMENT_OPERATIONS.filter((operation) => operations === undefined || operations.includes(operation));
}

/** Whether there is a payment, with one key, that both rules cover. */
function overlaps(one: Rule, other: Rule): boolean {
  const operations = new Set(paymentsOf(other));
  if (!paymentsOf(one).some((operation) => operations.has(operation))) return false;
  if (one.keys === undefined || other.keys === undefined) return true;
  const keys = new Set(other.keys);
  return one.keys.some((key) => keys.has(key));
}
