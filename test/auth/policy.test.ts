// Policies and token requests on the wire: what is refused, because it could widen a rule unnoticed.

import { describe, expect, it } from 'vitest';
import { remarksOn } from '../../operator/commands/policies.ts';
import { policySchema, type Rule, tokenRequestSchema } from '../../signer/api/policy.ts';

const KEY = `0x${'ab'.repeat(48)}`;

function messagesOf(result: { error?: { issues: readonly { message: string; path: PropertyKey[] }[] } | undefined }) {
  return (result.error?.issues ?? []).map((issue) => `${issue.path.join('.')}: ${issue.message}`);
}

/** What a policy of this one rule is refused for; empty when it is not. */
function complaint(rule: unknown): string {
  return messagesOf(policySchema.safeParse({ name: 'validators', rules: [rule] })).join('\n');
}

it('the example shapes of the guides are valid', () => {
  const rules: Rule[] = [
    { effect: 'allow', scopes: ['sign', 'public_keys'], keys: [KEY] },
    { effect: 'deny', operations: ['VOLUNTARY_EXIT'] },
    { effect: 'allow', scopes: ['public_keys', 'list_keys', 'chamber_status'] },
    { effect: 'allow', scopes: ['sign'], operations: ['VOLUNTARY_EXIT'] },
  ];
  expect(policySchema.parse({ name: 'validator-client', rules })).toEqual({ name: 'validator-client', rules });
});

it('public keys come out in one spelling, whatever their case and prefix', () => {
  const policy = policySchema.parse({
    name: 'p',
    rules: [{ effect: 'allow', keys: ['AB'.repeat(48), KEY.toUpperCase()] }],
  });
  expect(policy.rules[0]?.keys).toEqual([KEY, KEY]);
});

it.each(['scopes', 'keys', 'operations', 'fee_recipients'])('an empty list of %s is refused', (list) => {
  expect(complaint({ effect: 'allow', [list]: [] })).toContain(`rules.0.${list}`);
});

it.each(['scopes', 'keys', 'operations', 'fee_recipients'])(
  '%s: null, as YAML reads an empty value, is refused',
  (list) => {
    expect(complaint({ effect: 'deny', [list]: null })).toContain(`rules.0.${list}`);
  },
);

const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';

it('fee recipients come out in one spelling; a mixed case has to be the checksum', () => {
  const spellings = [ADDRESS, ADDRESS.slice(2), ADDRESS.toLowerCase(), ADDRESS.slice(2).toUpperCase()];
  const policy = policySchema.parse({ name: 'p', rules: [{ effect: 'allow', fee_recipients: spellings }] });
  expect(policy.rules[0]?.fee_recipients).toEqual(spellings.map(() => ADDRESS.toLowerCase()));
  expect(complaint({ effect: 'allow', fee_recipients: [ADDRESS.replace('aA', 'AA')] })).toContain(
    'rules.0.fee_recipients.0: the checksum does not hold',
  );
});

it.each(['0x12', `${ADDRESS}00`, KEY, '', 'vitalik.eth'])('%j is no fee recipient', (address) => {
  expect(complaint({ effect: 'allow', fee_recipients: [address] })).toContain(
    'rules.0.fee_recipients.0: not an address',
  );
});

it.each([Number(ADDRESS), null, [ADDRESS]])(
  'a fee recipient of %j, as YAML reads one without quotes, is refused',
  (address) => {
    expect(complaint({ effect: 'allow', fee_recipients: [address] })).toContain('quote it');
  },
);

it('fee recipients of a rule are limited in number', () => {
  const recipients = Array.from({ length: 4097 }, (_, index) => `0x${index.toString(16).padStart(40, '0')}`);
  expect(complaint({ effect: 'allow', fee_recipients: recipients.slice(1) })).toBe('');
  expect(complaint({ effect: 'allow', fee_recipients: recipients })).toContain('at most 4096');
});

it.each([1, 60_000_000, Number.MAX_SAFE_INTEGER])('a gas limit of at most %d is accepted', (max_gas_limit) => {
  expect(complaint({ effect: 'allow', max_gas_limit })).toBe('');
});

it.each([0, -1, 1.5, '60000000', null, 2 ** 53])('a gas limit of at most %j is refused', (max_gas_limit) => {
  expect(complaint({ effect: 'allow', max_gas_limit })).toContain('rules.0.max_gas_limit');
});

it('an unknown scope is named', () => {
  expect(complaint({ effect: 'allow', scopes: ['sign', 'signn'] })).toContain('unknown scope "signn"');
});

it('an unknown operation is named', () => {
  expect(complaint({ effect: 'allow', operations: ['BLOCK'] })).toContain('unknown operation "BLOCK"');
});

it('operation names are matched exactly', () => {
  expect(complaint({ effect: 'allow', operations: ['attestation'] })).toContain('unknown operation');
});

it('a malformed public key is named, cut to a bounded length', () => {
  const message = complaint({ effect: 'allow', keys: [KEY, `0x${'cd'.repeat(5000)}`] });
  expect(message).toContain('rules.0.keys.1: not a validator public key');
  expect(message.length).toBeLessThan(200);
});

it('a key that YAML read as a number is refused', () => {
  expect(complaint({ effect: 'allow', keys: [Number(KEY)] })).toContain('rules.0.keys.0');
});

it.each(['permit', 'ALLOW', undefined, null])('an effect %j is refused', (effect) => {
  expect(complaint({ effect, scopes: ['sign'] })).toContain('effect is allow or deny');
});

it('a member that no rule has is refused: a misspelt list must not match everything', () => {
  expect(complaint({ effect: 'allow', operation: ['ATTESTATION'] })).toContain('Unrecognized key');
});

it('a rule may name 100,000 keys', () => {
  const keys = Array.from({ length: 100_000 }, (_, index) => `0x${index.toString(16).padStart(96, '0')}`);
  expect(policySchema.safeParse({ name: 'large', rules: [{ effect: 'allow', keys }] }).success).toBe(true);
});

it('rules, and keys of a rule, are limited in number', () => {
  const rules = Array.from({ length: 257 }, () => ({ effect: 'allow' }));
  expect(policySchema.safeParse({ name: 'p', rules }).success).toBe(false);
  expect(policySchema.safeParse({ name: 'p', rules: [] }).success).toBe(false);
  expect(complaint({ effect: 'allow', keys: Array.from({ length: 200_001 }, () => KEY) })).toContain('at most 200000');
});

it.each(['a', 'A.b_c-9', '0', 'x'.repeat(64), 'constructor'])('%s is a policy name', (name) => {
  expect(policySchema.safeParse({ name, rules: [{ effect: 'allow' }] }).success).toBe(true);
});

it.each(['', 'x'.repeat(65), '.hidden', '-flag', 'a/b', 'a b', 'ä', 'a\n', '__proto__'])(
  '%j is no policy name',
  (name) => {
    expect(policySchema.safeParse({ name, rules: [{ effect: 'allow' }] }).success).toBe(false);
  },
);

it('a token request has defaults for what it leaves out', () => {
  expect(tokenRequestSchema.parse({ policies: ['p'] })).toEqual({
    policies: ['p'],
    bound_cidrs: [],
    management: false,
  });
});

it.each([1, 315_360_000])('a lifetime of %d seconds is accepted', (ttl_seconds) => {
  expect(tokenRequestSchema.safeParse({ policies: ['p'], ttl_seconds }).success).toBe(true);
});

it.each([0, -1, 315_360_001, 1.5, '60', null])('a lifetime of %j is refused', (ttl_seconds) => {
  expect(tokenRequestSchema.safeParse({ policies: ['p'], ttl_seconds }).success).toBe(false);
});

it('a management token never takes bound_cidrs', () => {
  const request = { policies: [], management: true, bound_cidrs: ['10.0.0.0/8'] };
  expect(messagesOf(tokenRequestSchema.safeParse(request)).join()).toContain('bound_cidrs');
});

it('a management token needs no policy, a client token does', () => {
  expect(tokenRequestSchema.safeParse({ management: true }).success).toBe(true);
  expect(tokenRequestSchema.safeParse({}).success).toBe(false);
});

it('an unknown member of a token request is refused', () => {
  expect(tokenRequestSchema.safeParse({ policies: ['p'], ttl: 60 }).success).toBe(false);
});

describe('conditions on builders', () => {
  const parsed = (rule: object) => policySchema.parse({ name: 'p', rules: [{ effect: 'allow', ...rule }] }).rules[0];

  it('builders are text as it stands, or bytes; indexes are decimal text, or self', () => {
    const builders = ['Builder.example.org', '0xAB00', '0XAB00', 'é'];
    expect(parsed({ builders })?.builders).toEqual(['Builder.example.org', '0xab00', '0xab00', 'é']);
    const builder_indices = ['self', 7, '007', '18446744073709551615', '18446744073709551614'];
    const read = ['self', '7', '7', 'self', '18446744073709551614'];
    expect(parsed({ builder_indices })?.builder_indices).toEqual(read);
    // What is stored is read again when a row is.
    const stored = parsed({ builders, builder_indices });
    expect(parsed({ ...stored })).toEqual(stored);
  });

  it.each([
    [{ builders: [] }, 'an empty list'],
    [{ builders: ['0xabc'] }, 'not hex of whole bytes'],
    [{ builders: ['0xzz'] }, 'not hex of whole bytes'],
    [{ builders: ['0x'] }, 'a builder is 1 to 4096 bytes'],
    [{ builders: [''] }, 'a builder is 1 to 4096 bytes'],
    [{ builders: ['é'.repeat(2049)] }, 'a builder is 1 to 4096 bytes'],
    [{ builders: [7] }, 'quote it'],
    [{ builders: Array.from({ length: 257 }, (_, at) => `b${at}`) }, 'at most 256'],
    [{ builder_indices: ['18446744073709551616'] }, 'a builder index is a uint64, or self'],
    [{ builder_indices: [-1] }, 'a builder index is a uint64, or self'],
    [{ builder_indices: [1.5] }, 'must be a number, or self'],
    [{ builder_indices: ['Self'] }, 'a builder index is a uint64, or self'],
    [{ only_for_own_blocks: false }, 'is true, or left out'],
    [{ effect: 'deny', only_for_own_blocks: true }, 'stands in allow rules only'],
  ])('%j is refused: %s', (rule, problem) => {
    expect(complaint({ effect: 'allow', ...rule })).toContain(problem);
  });

  it('two that no message has together match nothing, and that is remarked', () => {
    const rules = [{ effect: 'allow', fee_recipients: [ADDRESS], builders: ['b'] }];
    const policy = policySchema.parse({ name: 'p', rules });
    expect(remarksOn(policy.rules)).toEqual([
      'rule 1 states fee_recipients and builders, and no message has all of these: it matches nothing',
    ]);
  });
});
