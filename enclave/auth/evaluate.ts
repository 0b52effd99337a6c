// Rule evaluation: may this caller do this? Pure, and the only place that answers it
// (specification/authorization.md#rules). A rule matches when each of scopes, keys, operations, fee recipients and gas
// limit that it states is met by the request. What it omits matches everything; what it states is not met by a request
// that has none of it (specification/authorization.md#payments). Any matching deny beats every allow, across all
// policies. Without a matching allow the answer is no. Policies are compiled once: keys become Sets, scopes and
// operations bits, so a request costs one step a rule.

import assert from 'node:assert/strict';
import { OPERATIONS, type Operation, PAYMENT_OPERATIONS, SCOPES, type Scope } from '../api/operations.ts';
import type { Payment } from '../api/payments.ts';
import type { Policy, Rule } from '../api/policy.ts';
import { compilePayment, type PaymentConditions, type UnmetCondition, unmetCondition } from './payment-conditions.ts';

export interface AccessRequest {
  readonly scope: Scope;
  /** Canonical spelling (formats/hex.ts). */
  readonly publicKey?: string;
  readonly operation?: Operation;
  /** What the message of a payment operation states; of every other message undefined. */
  readonly payment?: Payment | undefined;
}

/**
 * `policy` names the policy whose deny rule matched: for the audit log, never for the caller. `unmet` is what a payment
 * is refused for by the rules that are about it.
 */
export type AccessDecision =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly why: 'no_matching_allow'; readonly unmet?: UnmetCondition }
  | { readonly allowed: false; readonly why: 'denied_by_rule'; readonly policy: string };

interface CompiledRule {
  readonly policy: string;
  readonly scopes: number;
  readonly statesScopes: boolean;
  /** Undefined: every key, and requests without one. */
  readonly keys: ReadonlySet<string> | undefined;
  readonly operations: number;
  /** What the rule asks of the payment. Undefined: nothing, and it covers messages without one, too. */
  readonly payment: PaymentConditions | undefined;
}

/** What a caller may do: the rules of all of its policies. */
export interface CompiledAccess {
  readonly allows: readonly CompiledRule[];
  readonly denies: readonly CompiledRule[];
}

/** What a caller may do that is bound to a policy which does not exist: nothing. */
export const NO_ACCESS: CompiledAccess = Object.freeze({ allows: [], denies: [] });

/** Callers bound to the same policy share what this returns, so its keys are in memory once. */
export function compilePolicy(policy: Policy): CompiledAccess {
  const compile = (rule: Rule) => compileRule(policy.name, rule);
  return {
    allows: policy.rules.filter((rule) => rule.effect === 'allow').map(compile),
    denies: policy.rules.filter((rule) => rule.effect !== 'allow').map(compile),
  };
}

/** The access of a caller bound to all of the given policies. */
export function joinAccess(parts: readonly CompiledAccess[]): CompiledAccess {
  return { allows: parts.flatMap((part) => part.allows), denies: parts.flatMap((part) => part.denies) };
}

export function evaluate(access: CompiledAccess, request: AccessRequest): AccessDecision {
  const { scope, publicKey, operation, payment = 'none' } = request;
  const target = { scope, publicKey };
  const wanted = operation === undefined ? NO_OPERATION : OPERATION_BITS[operation];
  if ((coveredOperations(access.denies, target, payment) & wanted) !== 0) {
    return deniedBy(access, target, payment, wanted);
  }
  if ((coveredOperations(access.allows, target, payment) & wanted) !== 0) return ALLOWED;
  return payment === 'none' ? NO_MATCHING_ALLOW : paymentRefusal(access, target, payment, wanted);
}

/**
 * The decision on a keyed request whose message is not known yet, because its body is not read: allowed when some
 * message may be. An allow rule about payments counts, for the payment may meet it; a deny rule about payments does
 * not, for the payment may not meet it. So nothing is denied here that `evaluate` would allow; it decides again once
 * the message is known, and it alone decides about payments.
 */
export function evaluateBeforeBody(
  access: CompiledAccess,
  request: { scope: Scope; publicKey: string },
): AccessDecision {
  const allowed = coveredOperations(access.allows, request, 'some') & EVERY_OPERATION;
  if (allowed === 0) return NO_MATCHING_ALLOW;
  const denied = coveredOperations(access.denies, request, 'none');
  return (allowed & ~denied) === 0 ? deniedBy(access, request, 'none', allowed) : ALLOWED;
}

/**
 * The decision on a batch that names keys: one denied key refuses it whole. An empty batch is `admitsRoute`'s matter.
 */
export function evaluateBatch(access: CompiledAccess, scope: Scope, publicKeys: Iterable<string>): AccessDecision {
  for (const publicKey of publicKeys) {
    const decision = evaluate(access, { scope, publicKey });
    if (!decision.allowed) return decision;
  }
  return ALLOWED;
}

/**
 * The decision on a route that carries no key, or none before its body is read; what it then shows or touches is
 * decided key by key. Admitted when an allow rule names the scope, whatever its keys and operations, and no deny rule
 * without keys and operations covers it. A rule that omits its scopes names every scope, with one exception: when it
 * states keys or operations it does not name a scope that acts on the signer as a whole, for there nothing narrows it
 * afterwards and "everything on this key" would include sealing the cluster. A rule about payments names no scope here:
 * what follows on these routes never is one.
 */
export function admitsRoute(access: CompiledAccess, scope: Scope): AccessDecision {
  if ((coveredOperations(access.denies, { scope }, 'none') & NO_OPERATION) !== 0) {
    return deniedBy(access, { scope }, 'none', NO_OPERATION);
  }
  const bit = SCOPE_BITS[scope];
  const wholeSigner = WHOLE_SIGNER_SCOPES.has(scope);
  const named = access.allows.some(
    (rule) =>
      rule.payment === undefined &&
      (rule.scopes & bit) !== 0 &&
      (rule.statesScopes || !wholeSigner || statesNothing(rule)),
  );
  return named ? ALLOWED : NO_MATCHING_ALLOW;
}

/** Whether `GET /api/v1/eth2/publicKeys` lists the key: it may be shown, and some operation may be signed with it. */
export function canSignWith(access: CompiledAccess, publicKey: string): boolean {
  return (
    evaluate(access, { scope: 'public_keys', publicKey }).allowed &&
    evaluateBeforeBody(access, { scope: 'sign', publicKey }).allowed
  );
}

const ALLOWED: AccessDecision = Object.freeze({ allowed: true });
const NO_MATCHING_ALLOW = Object.freeze({ allowed: false, why: 'no_matching_allow' } as const);

const SCOPE_BITS = bitsOf(SCOPES);
const OPERATION_BITS = bitsOf(OPERATIONS);
const EVERY_SCOPE = 2 ** SCOPES.length - 1;
const PAYMENT_BITS = maskOf(PAYMENT_OPERATIONS, OPERATION_BITS);
const EVERY_OPERATION = 2 ** OPERATIONS.length - 1;
/** Stands for "the request has no operation": met by a rule that omits its operations, and by no other. */
const NO_OPERATION = 2 ** OPERATIONS.length;

/** Their routes never name an existing key. */
const WHOLE_SIGNER_SCOPES: ReadonlySet<Scope> = new Set<Scope>([
  'chamber_keys_generate',
  'chamber_keys_generate_bls',
  'chamber_seal',
  'chamber_status',
]);

function compileRule(policy: string, rule: Rule): CompiledRule {
  const payment = compilePayment(rule);
  const operations =
    rule.operations === undefined ? EVERY_OPERATION | NO_OPERATION : maskOf(rule.operations, OPERATION_BITS);
  return {
    policy,
    scopes: rule.scopes === undefined ? EVERY_SCOPE : maskOf(rule.scopes, SCOPE_BITS),
    statesScopes: rule.scopes !== undefined,
    keys: rule.keys === undefined ? undefined : new Set(rule.keys),
    operations: payment === undefined ? operations : operations & PAYMENT_BITS,
    payment,
  };
}

/**
 * What a decision knows of the payment: what it is, that there is none, or that it may be any and meet every condition.
 */
type KnownPayment = Payment | 'none' | 'some';

interface Target {
  readonly scope: Scope;
  readonly publicKey?: string | undefined;
}

/** The operations (and NO_OPERATION) for which some of the rules match a request of this scope, key and payment. */
function coveredOperations(
  rules: readonly CompiledRule[],
  { scope, publicKey }: Target,
  payment: KnownPayment,
): number {
  const scopeBit = SCOPE_BITS[scope];
  let covered = 0;
  for (const rule of rules) {
    if ((rule.scopes & scopeBit) !== 0 && matchesKey(rule, publicKey) && matchesPayment(rule, payment)) {
      covered |= rule.operations;
    }
  }
  return covered;
}

function matchesPayment({ payment: conditions }: CompiledRule, payment: KnownPayment): boolean {
  if (conditions === undefined || payment === 'some') return true;
  return payment !== 'none' && unmetCondition(conditions, payment) === undefined;
}

/**
 * Names the gas limit when a rule allows the recipient with a lower one, else the recipient; neither without such
 * rules.
 */
function paymentRefusal(access: CompiledAccess, target: Target, payment: Payment, wanted: number): AccessDecision {
  const unmet = new Set<UnmetCondition>();
  for (const rule of access.allows) {
    if ((coveredOperations([rule], target, 'some') & wanted) === 0 || rule.payment === undefined) continue;
    const condition = unmetCondition(rule.payment, payment);
    if (condition !== undefined) unmet.add(condition);
  }
  if (unmet.size === 0) return NO_MATCHING_ALLOW;
  return { ...NO_MATCHING_ALLOW, unmet: unmet.has('gas_limit') ? 'gas_limit' : 'fee_recipient' };
}

function matchesKey(rule: CompiledRule, publicKey: string | undefined): boolean {
  return rule.keys === undefined || (publicKey !== undefined && rule.keys.has(publicKey));
}

function statesNothing(rule: CompiledRule): boolean {
  return rule.keys === undefined && (rule.operations & NO_OPERATION) !== 0;
}

/** The refusal that names the first deny rule covering one of the wanted operations; the caller knows there is one. */
function deniedBy(access: CompiledAccess, target: Target, payment: KnownPayment, wanted: number): AccessDecision {
  const rule = access.denies.find((deny) => (coveredOperations([deny], target, payment) & wanted) !== 0);
  assert(rule !== undefined, 'a denial comes from a rule');
  return { allowed: false, why: 'denied_by_rule', policy: rule.policy };
}

function bitsOf<Name extends string>(names: readonly Name[]): Readonly<Record<Name, number>> {
  return Object.fromEntries(names.map((name, index) => [name, 2 ** index])) as Record<Name, number>;
}

function maskOf<Name extends string>(names: readonly Name[], bits: Readonly<Record<Name, number>>): number {
  return names.reduce((mask, name) => mask | bits[name], 0);
}
