// May this caller do this? Pure, and the only place that answers it (specification/authorization.md#rules). Policies
// are compiled once, so a request costs one step a rule.

import assert from 'node:assert/strict';
import {
  conditionsOf,
  OPERATIONS,
  type Operation,
  operationsOfConditions,
  SCOPES,
  type Scope,
} from '../api/operations.ts';
import { builderBytes, builderIndexNumber, type Policy, type Rule } from '../api/policy.ts';
import type { Payment } from '../operations/row.ts';

export interface AccessRequest {
  readonly scope: Scope;
  readonly publicKey?: string;
  readonly operation?: Operation;
  /** What the message of a payment operation states. */
  readonly payment?: Payment | undefined;
}

/**
 * `policy` is for the audit log, never for the caller. `unmet` is what a payment is refused for. `onlyForOwnBlocks`:
 * allowed if the envelope is for a block that the key signed, which the signing path finds out.
 */
export type AccessDecision =
  | { readonly allowed: true; readonly onlyForOwnBlocks?: true }
  | { readonly allowed: false; readonly why: 'no_matching_allow'; readonly unmet?: UnmetCondition }
  | { readonly allowed: false; readonly why: 'denied_by_rule'; readonly policy: string };

interface CompiledRule {
  readonly policy: string;
  readonly scopes: number;
  readonly statesScopes: boolean;
  readonly keys: ReadonlySet<string> | undefined;
  readonly operations: number;
  /** Undefined: the rule asks nothing, and covers messages without a payment, too. */
  readonly payment: PaymentConditions | undefined;
}

export interface CompiledAccess {
  readonly allows: readonly CompiledRule[];
  readonly denies: readonly CompiledRule[];
}

export const NO_ACCESS: CompiledAccess = Object.freeze({ allows: [], denies: [] });

/** Callers bound to the same policy share it, so its keys are in memory once. */
export function compilePolicy(policy: Policy): CompiledAccess {
  const compile = (rule: Rule) => compileRule(policy.name, rule);
  return {
    allows: policy.rules.filter((rule) => rule.effect === 'allow').map(compile),
    denies: policy.rules.filter((rule) => rule.effect !== 'allow').map(compile),
  };
}

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
  if ((coveredOperations(access.allows, target, payment) & wanted) !== 0) {
    const needsOwnBlock = !access.allows.some(
      (rule) => rule.payment?.onlyForOwnBlocks !== true && (coveredOperations([rule], target, payment) & wanted) !== 0,
    );
    return needsOwnBlock ? ALLOWED_FOR_OWN_BLOCKS : ALLOWED;
  }
  return payment === 'none' ? NO_MATCHING_ALLOW : paymentRefusal(access, target, payment, wanted);
}

/**
 * Before the message is known: denies nothing that `evaluate` would allow.
 * @param request.operation when only messages of one operation are meant
 */
export function evaluateBeforeBody(
  access: CompiledAccess,
  request: { scope: Scope; publicKey: string; operation?: Operation },
): AccessDecision {
  const wanted = request.operation === undefined ? EVERY_OPERATION : OPERATION_BITS[request.operation];
  const allowed = coveredOperations(access.allows, request, 'some') & wanted;
  if (allowed === 0) return NO_MATCHING_ALLOW;
  const denied = coveredOperations(access.denies, request, 'none');
  return (allowed & ~denied) === 0 ? deniedBy(access, request, 'none', allowed) : ALLOWED;
}

export function evaluateBatch(access: CompiledAccess, scope: Scope, publicKeys: Iterable<string>): AccessDecision {
  for (const publicKey of publicKeys) {
    const decision = evaluate(access, { scope, publicKey });
    if (!decision.allowed) return decision;
  }
  return ALLOWED;
}

/**
 * The decision on a route without a key (specification/authorization.md#routes-without-keys). A rule without scopes
 * that states keys or operations names no scope of the whole signer: "everything on this key" would include sealing.
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

export function canSignWith(access: CompiledAccess, publicKey: string): boolean {
  return (
    evaluate(access, { scope: 'public_keys', publicKey }).allowed &&
    evaluateBeforeBody(access, { scope: 'sign', publicKey }).allowed
  );
}

const ALLOWED: AccessDecision = Object.freeze({ allowed: true });
const ALLOWED_FOR_OWN_BLOCKS: AccessDecision = Object.freeze({ allowed: true, onlyForOwnBlocks: true });
const NO_MATCHING_ALLOW = Object.freeze({ allowed: false, why: 'no_matching_allow' } as const);

const SCOPE_BITS = bitsOf(SCOPES);
const OPERATION_BITS = bitsOf(OPERATIONS);
const EVERY_SCOPE = 2 ** SCOPES.length - 1;
const EVERY_OPERATION = 2 ** OPERATIONS.length - 1;
/** Met by a rule that omits its operations, and by no other. */
const NO_OPERATION = 2 ** OPERATIONS.length;

/** Their routes never name an existing key; a log is of all keys. */
const WHOLE_SIGNER_SCOPES: ReadonlySet<Scope> = new Set<Scope>([
  'chamber_keys_generate',
  'chamber_keys_generate_bls',
  'chamber_seal',
  'chamber_status',
  'receipts',
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
    operations:
      payment === undefined
        ? operations
        : operations & maskOf(operationsOfConditions(conditionsOf(rule)), OPERATION_BITS),
    payment,
  };
}

/** A payment; `none`; or `some`: it is not read yet, so it is taken to meet every condition. */
type KnownPayment = Payment | 'none' | 'some';

interface Target {
  readonly scope: Scope;
  readonly publicKey?: string | undefined;
}

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

/** The condition that the nearest allowing rule leaves unmet. */
function paymentRefusal(access: CompiledAccess, target: Target, payment: Payment, wanted: number): AccessDecision {
  const unmet = new Set<UnmetCondition>();
  for (const rule of access.allows) {
    if ((coveredOperations([rule], target, 'some') & wanted) === 0 || rule.payment === undefined) continue;
    const condition = unmetCondition(rule.payment, payment);
    if (condition !== undefined) unmet.add(condition);
  }
  const nearest = nearestUnmet(unmet);
  return nearest === undefined ? NO_MATCHING_ALLOW : { ...NO_MATCHING_ALLOW, unmet: nearest };
}

function matchesKey(rule: CompiledRule, publicKey: string | undefined): boolean {
  return rule.keys === undefined || (publicKey !== undefined && rule.keys.has(publicKey));
}

function statesNothing(rule: CompiledRule): boolean {
  return rule.keys === undefined && (rule.operations & NO_OPERATION) !== 0;
}

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

/** specification/authorization.md#payments. A rule that states any of it covers no other message. */
interface PaymentConditions {
  /** Canonical. Undefined, like the others: anybody. */
  readonly feeRecipients: ReadonlySet<string> | undefined;
  readonly maxGasLimit: bigint | undefined;
  readonly builders: ReadonlySet<string> | undefined;
  readonly builderIndices: ReadonlySet<bigint> | undefined;
  readonly onlyForOwnBlocks: boolean;
}

/** The most serious first: the address that gets the money. */
const UNMET_CONDITIONS = ['fee_recipient', 'gas_limit', 'builder', 'builder_index'] as const;

export type UnmetCondition = (typeof UNMET_CONDITIONS)[number];

function compilePayment(rule: Rule): PaymentConditions | undefined {
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

function unmetCondition(
  { feeRecipients, maxGasLimit, builders, builderIndices }: PaymentConditions,
  { feeRecipient, gasLimit, builder, builderIndex }: Payment,
): UnmetCondition | undefined {
  if (!isIn(feeRecipients, feeRecipient)) return 'fee_recipient';
  if (maxGasLimit !== undefined && (gasLimit === undefined || gasLimit > maxGasLimit)) return 'gas_limit';
  if (!isIn(builders, builder)) return 'builder';
  return isIn(builderIndices, builderIndex) ? undefined : 'builder_index';
}

function nearestUnmet(unmet: ReadonlySet<UnmetCondition>): UnmetCondition | undefined {
  return UNMET_CONDITIONS.findLast((condition) => unmet.has(condition));
}

function isIn<Value>(allowed: ReadonlySet<Value> | undefined, value: Value | undefined): boolean {
  return allowed === undefined || (value !== undefined && allowed.has(value));
}
