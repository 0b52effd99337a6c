// The rules of specification/authorization.md#rules, one by one. test/property/auth-evaluate.test.ts compares them with
// an oracle.

import { expect, it } from 'vitest';
import { OPERATIONS, SCOPES, type Scope } from '../../signer/api/operations.ts';
import type { Policy, Rule } from '../../signer/api/policy.ts';
import {
  admitsRoute,
  type CompiledAccess,
  canSignWith,
  compilePolicy,
  evaluate,
  evaluateBatch,
  evaluateBeforeBody,
  joinAccess,
  NO_ACCESS,
} from '../../signer/auth/evaluate.ts';

function compilePolicies(policies: readonly Policy[]): CompiledAccess {
  return joinAccess(policies.map(compilePolicy));
}

const KEY = `0x${'aa'.repeat(48)}`;
const OTHER_KEY = `0x${'bb'.repeat(48)}`;
const SIGN = { scope: 'sign', publicKey: KEY } as const;
const ATTESTATION = { ...SIGN, operation: 'ATTESTATION' } as const;
const EXIT = { scope: 'sign', publicKey: KEY, operation: 'VOLUNTARY_EXIT' } as const;
const WHOLE_SIGNER = [
  'chamber_keys_generate',
  'chamber_keys_generate_bls',
  'chamber_seal',
  'chamber_status',
  'receipts',
] as const;

const ALLOWED = { allowed: true };
const NO_ALLOW = { allowed: false, why: 'no_matching_allow' };

function accessOf(...rules: Rule[]) {
  return compilePolicies([{ name: 'p', rules }]);
}

const validatorClient = accessOf(
  { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY] },
  { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
);

it('without a matching allow the answer is no', () => {
  expect(evaluate(NO_ACCESS, ATTESTATION)).toEqual(NO_ALLOW);
  expect(evaluate(accessOf({ effect: 'deny', scopes: ['chamber_seal'] }), ATTESTATION)).toEqual(NO_ALLOW);
  expect(evaluate(compilePolicies([]), { scope: 'chamber_status' })).toEqual(NO_ALLOW);
});

it('an allow rule that omits every list allows everything', () => {
  const access = accessOf({ effect: 'allow' });
  for (const scope of SCOPES) expect(evaluate(access, { scope })).toEqual(ALLOWED);
  for (const operation of OPERATIONS) expect(evaluate(access, { ...ATTESTATION, operation })).toEqual(ALLOWED);
});

it('a validator client signs with its keys and no others, and makes no voluntary exit', () => {
  expect(evaluate(validatorClient, ATTESTATION)).toEqual(ALLOWED);
  expect(evaluate(validatorClient, { ...ATTESTATION, publicKey: OTHER_KEY })).toEqual(NO_ALLOW);
  expect(evaluate(validatorClient, EXIT)).toEqual({ allowed: false, why: 'denied_by_rule', policy: 'p' });
});

it('an exit operator makes voluntary exits and signs nothing else', () => {
  const access = accessOf({ effect: 'allow', scopes: ['sign'], operations: ['VOLUNTARY_EXIT'] });
  expect(evaluate(access, EXIT)).toEqual(ALLOWED);
  expect(evaluate(access, ATTESTATION)).toEqual(NO_ALLOW);
});

it('stated keys are not met by a request without a key', () => {
  expect(evaluate(accessOf({ effect: 'allow', keys: [KEY] }), { scope: 'chamber_seal' })).toEqual(NO_ALLOW);
  const access = accessOf({ effect: 'allow' }, { effect: 'deny', keys: [KEY] });
  expect(evaluate(access, { scope: 'chamber_seal' })).toEqual(ALLOWED);
});

it('stated operations are not met by a request without an operation', () => {
  const access = accessOf({ effect: 'allow', operations: [...OPERATIONS] });
  expect(evaluate(access, { scope: 'list_keys', publicKey: KEY })).toEqual(NO_ALLOW);
});

it('a deny beats every allow, whichever comes first and whichever policy it is in', () => {
  const allow = { name: 'allow', rules: [{ effect: 'allow' as const }] };
  const deny = { name: 'deny', rules: [{ effect: 'deny' as const, scopes: ['sign' as const] }] };
  for (const policies of [
    [allow, deny],
    [deny, allow],
  ]) {
    expect(evaluate(compilePolicies(policies), ATTESTATION)).toEqual({
      allowed: false,
      why: 'denied_by_rule',
      policy: 'deny',
    });
  }
});

it('before the body is read a sign request passes when some operation is allowed on the key', () => {
  expect(evaluateBeforeBody(validatorClient, SIGN)).toEqual(ALLOWED);
  expect(evaluateBeforeBody(validatorClient, { scope: 'sign', publicKey: OTHER_KEY })).toEqual(NO_ALLOW);
});

it('before the body is read a sign request fails when the allowed operations are all denied', () => {
  const access = accessOf(
    { effect: 'allow', scopes: ['sign'], operations: ['VOLUNTARY_EXIT'] },
    { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
  );
  expect(evaluateBeforeBody(access, SIGN)).toEqual({ allowed: false, why: 'denied_by_rule', policy: 'p' });
});

it('when each of the ten operations is denied nothing can be signed, though no rule denies signing as such', () => {
  const access = accessOf({ effect: 'allow' }, { effect: 'deny', operations: [...OPERATIONS] });
  expect(evaluateBeforeBody(access, SIGN)).toEqual({ allowed: false, why: 'denied_by_rule', policy: 'p' });
  expect(canSignWith(access, KEY)).toBe(false);
});

it('one denied key refuses a batch whole', () => {
  const access = accessOf({ effect: 'allow', scopes: ['delete_keys'] }, { effect: 'deny', keys: [OTHER_KEY] });
  expect(evaluateBatch(access, 'delete_keys', [KEY])).toEqual(ALLOWED);
  expect(evaluateBatch(access, 'delete_keys', [KEY, OTHER_KEY]).allowed).toBe(false);
});

it('a key is listed when it may be shown and some operation may be signed with it', () => {
  expect(canSignWith(validatorClient, KEY)).toBe(true);
  expect(canSignWith(validatorClient, OTHER_KEY)).toBe(false);
  expect(canSignWith(accessOf({ effect: 'allow', scopes: ['public_keys'] }), KEY)).toBe(false);
  expect(canSignWith(accessOf({ effect: 'allow', scopes: ['sign'] }), KEY)).toBe(false);
});

it('a route without a key is admitted by an allow rule that names its scope, whatever its keys and operations', () => {
  expect(admitsRoute(validatorClient, 'public_keys')).toEqual(ALLOWED);
  expect(admitsRoute(validatorClient, 'list_keys')).toEqual(NO_ALLOW);
  for (const scope of SCOPES) {
    expect(admitsRoute(accessOf({ effect: 'allow', scopes: [scope], keys: [KEY] }), scope)).toEqual(ALLOWED);
  }
});

/** Whether publicKeys is admitted for a caller allowed everything but what this rule denies. */
function admittedDespite(deny: Omit<Rule, 'effect'>): boolean {
  return admitsRoute(accessOf({ effect: 'allow' }, { effect: 'deny', ...deny }), 'public_keys').allowed;
}

it('a route without a key is refused by a deny rule that covers it, but not by one with keys or operations', () => {
  expect(admittedDespite({})).toBe(false);
  expect(admittedDespite({ scopes: ['public_keys'] })).toBe(false);
  expect(admittedDespite({ scopes: ['sign'] })).toBe(true);
  expect(admittedDespite({ keys: [KEY] })).toBe(true);
  expect(admittedDespite({ operations: [...OPERATIONS] })).toBe(true);
});

it('a rule that omits its scopes and states keys admits the lists that are filtered by key', () => {
  const access = accessOf({ effect: 'allow', keys: [KEY] });
  const admitted = SCOPES.filter((scope) => admitsRoute(access, scope).allowed);
  expect(admitted).toEqual(SCOPES.filter((scope) => !WHOLE_SIGNER.includes(scope as (typeof WHOLE_SIGNER)[number])));
});

it.each(WHOLE_SIGNER)('a rule about keys or operations only is no leave for %s', (scope: Scope) => {
  expect(admitsRoute(accessOf({ effect: 'allow', keys: [KEY] }), scope)).toEqual(NO_ALLOW);
  expect(admitsRoute(accessOf({ effect: 'allow', operations: ['VOLUNTARY_EXIT'] }), scope)).toEqual(NO_ALLOW);
  expect(admitsRoute(accessOf({ effect: 'allow' }), scope)).toEqual(ALLOWED);
});
