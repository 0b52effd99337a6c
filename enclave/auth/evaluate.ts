// Rule evaluation: may this caller do this? Pure, and the only place that answers it (decisions.md section 4).
// A rule matches when each of scopes, keys and operations that it states is met by the request; a list it omits matches
// everything; stated keys or operations are not met by a request that has none. Any matching deny beats every allow,
// across all policies. Without a matching allow the answer is no.
// Policies are compiled once: keys become Sets, scopes and operations bits, so a request costs one step a rule.

import assert from 'node:assert/strict';
import { OPERATIONS, type Operation, SCOPES, type Scope } from '../api/operations.ts';
import type { Policy, Rule } from '../api/policy.ts';

export interface AccessRequest {
  readonly scope: Scope;
  /** Canonical spelling (api/hex.ts). */
  readonly publicKey?: string;
  readonly operation?: Operation;
}

/** `policy` names the policy whose deny rule matched. For the audit log, never for the caller. */
export type AccessDecision =
  | { readonly allowed: true }
  | { readonly allowed: false; readonly why: 'no_matching_allow' }
  | { readonly allowed: false; readonly why: 'denied_by_rule'; readonly policy: string };

interface CompiledRule {
  readonly policy: string;
  readonly scopes: number;
  readonly statesScopes: boolean;
  /** Undefined: every key, and requests without one. */
  readonly keys: ReadonlySet<string> | undefined;
  readonly operations: number;
}

/** What a caller may do: the rules of all of its policies. */
export interface CompiledAccess {
  readonly allows: readonly CompiledRule[];
  readonly denies: readonly CompiledRule[];
}

/** Of a caller bound to a policy that does not exist: nothing is allowed. */
export const NO_ACCESS: CompiledAccess = Object.freeze({ allows: [], denies: [] });

export function compilePolicies(policies: readonly Policy[]): CompiledAccess {
  return joinAccess(policies.map(compilePolicy));
}

/** One policy alone. Callers bound to the same policy share what this returns, so its keys are in memory once. */
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
  const { scope, publicKey, operation } = request;
  const wanted = operation === undefined ? NO_OPERATION : OPERATION_BITS[operation];
  if ((coveredOperations(access.denies, scope, publicKey) & wanted) !== 0) {
    return deniedBy(access, scope, publicKey, wanted);
  }
  return (coveredOperations(access.allows, scope, publicKey) & wanted) === 0 ? NO_MATCHING_ALLOW : ALLOWED;
}

/**
 * The decision on a keyed request whose operation is not known yet, because its body is not read: allowed when some
 * operation is. `evaluate` decides again once the operation is known.
 */
export function evaluateBeforeBody(
  access: CompiledAccess,
  request: { scope: Scope; publicKey: string },
): AccessDecision {
  const { scope, publicKey } = request;
  const allowed = coveredOperations(access.allows, scope, publicKey) & EVERY_OPERATION;
  if (allowed === 0) return NO_MATCHING_ALLOW;
  const denied = coveredOperations(access.denies, scope, publicKey);
  return (allowed & ~denied) === 0 ? deniedBy(access, scope, publicKey, allowed) : ALLOWED;
}

/** The decision on a batch that names keys: one denied key refuses it whole. An empty batch is `admitsRoute`'s matter. */
export function evaluateBatch(access: CompiledAccess, scope: Scope, publicKeys: Iterable<string>): AccessDecision {
  for (const publicKey of publicKeys) {
    const decision = evaluate(access, { scope, publicKey });
    if (!decision.allowed) return decision;
  }
  return ALLOWED;
}

/**
 * The decision on a route that carries no key, or none before its body is read; what it then shows or touches is decided
 * key by key. Admitted when an allow rule names the scope, whatever its keys and operations, and no deny rule without
 * keys and operations covers it. A rule that omits its scopes names every scope, with one exception: when it states keys
 * or operations it does not name a scope that acts on the signer as a whole, for there nothing narrows it afterwards and
 * "everything on this key" would include sealing the cluster.
 */
export function admitsRoute(access: CompiledAccess, scope: Scope): AccessDecision {
  if ((coveredOperations(access.denies, scope, undefined) & NO_OPERATION) !== 0) {
    return deniedBy(access, scope, undefined, NO_OPERATION);
  }
  const bit = SCOPE_BITS[scope];
  const wholeSigner = WHOLE_SIGNER_SCOPES.has(scope);
  const named = access.allows.some(
    (rule) => (rule.scopes & bit) !== 0 && (rule.statesScopes || !wholeSigner || statesNothing(rule)),
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
const NO_MATCHING_ALLOW: AccessDecision = Object.freeze({ allowed: false, why: 'no_matching_allow' });

const SCOPE_BITS = bitsOf(SCOPES);
const OPERATION_BITS = bitsOf(OPERATIONS);
const EVERY_SCOPE = 2 ** SCOPES.length - 1;
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
  return {
    policy,
    scopes: rule.scopes === undefined ? EVERY_SCOPE : maskOf(rule.scopes, SCOPE_BITS),
    statesScopes: rule.scopes !== undefined,
    keys: rule.keys === undefined ? undefined : new Set(rule.keys),
    operations:
      rule.operations === undefined ? EVERY_OPERATION | NO_OPERATION : maskOf(rule.operations, OPERATION_BITS),
  };
}

/** The operations (and NO_OPERATION) for which some of the rules match a request of this scope and key. */
function coveredOperations(rules: readonly CompiledRule[], scope: Scope, publicKey: string | undefined): number {
  const scopeBit = SCOPE_BITS[scope];
  let covered = 0;
  for (const rule of rules) {
    if ((rule.scopes & scopeBit) !== 0 && matchesKey(rule, publicKey)) covered |= rule.operations;
  }
  return covered;
}

function matchesKey(rule: CompiledRule, publicKey: string | undefined): boolean {
  return rule.keys === undefined || (publicKey !== undefined && rule.keys.has(publicKey));
}

function statesNothing(rule: CompiledRule): boolean {
  return rule.keys === undefined && (rule.operations & NO_OPERATION) !== 0;
}

/** The refusal that names the first deny rule covering one of the wanted operations; the caller knows there is one. */
function deniedBy(access: CompiledAccess, scope: Scope, publicKey: string | undefined, wanted: number): AccessDecision {
  const rule = access.denies.find((deny) => (coveredOperations([deny], scope, publicKey) & wanted) !== 0);
  assert(rule !== undefined, 'a denial comes from a rule');
  return { allowed: false, why: 'denied_by_rule', policy: rule.policy };
}

function bitsOf<Name extends string>(names: readonly Name[]): Readonly<Record<Name, number>> {
  return Object.fromEntries(names.map((name, index) => [name, 2 ** index])) as Record<Name, number>;
}

function maskOf<Name extends string>(names: readonly Name[], bits: Readonly<Record<Name, number>>): number {
  return names.reduce((mask, name) => mask | bits[name], 0);
}
