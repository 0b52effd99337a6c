// What rules say and their author can hardly have meant. Nothing is refused for it. Sentences
// have no end, and count rules from 1.

import { conditionsOf, operationsOfConditions, type PaymentOperation } from './operations.ts';
import type { Rule } from './policy.ts';

/** A stated operation is met by no request that has none (specification/authorization.md#rules). */
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

const SCOPE_OF_OPERATIONS = 'sign';

export function paymentRemarksOn(rules: readonly Rule[]): string[] {
  const open = rules.filter((rule) => rule.effect === 'allow' && conditionsOf(rule).length === 0);
  return rules.flatMap((rule, index) => {
    const conditions = conditionsOf(rule);
    if (conditions.length === 0) return [];
    const subject = `rule ${index + 1} states ${conditions.join(' and ')}, and`;
    const possible = operationsOfConditions(conditions);
    if (possible.length === 0) return [`${subject} no message has all of these: it matches nothing`];
    if (paymentsOf(rule).length === 0) {
      return [`${subject} its scopes or operations leave none of ${possible.join(', ')}: it matches nothing`];
    }
    const wider = rule.effect === 'allow' ? open.find((other) => overlaps(rule, other)) : undefined;
    if (wider === undefined) return [];
    const number = rules.indexOf(wider) + 1;
    return [
      `${subject} rule ${number} allows the same without: leave the payments out of the operations of rule ${number}`,
    ];
  });
}

function paymentsOf(rule: Rule): readonly PaymentOperation[] {
  const { scopes, operations } = rule;
  if (scopes !== undefined && !scopes.includes('sign')) return [];
  return operationsOfConditions(conditionsOf(rule)).filter((operation) => operations?.includes(operation) ?? true);
}

function overlaps(one: Rule, other: Rule): boolean {
  const operations = new Set(paymentsOf(other));
  if (!paymentsOf(one).some((operation) => operations.has(operation))) return false;
  if (one.keys === undefined || other.keys === undefined) return true;
  const keys = new Set(other.keys);
  return one.keys.some((key) => keys.has(key));
}
