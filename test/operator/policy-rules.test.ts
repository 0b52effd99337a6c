// What `operator auth policy` takes for rules: what the guide and the Auth API write, and nothing that is less strict.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CommandFailure } from '../../operator/exit.ts';
import { PRESETS } from '../../operator/policy-presets.ts';
import { rulesOf } from '../../operator/policy-rules.ts';
import { SCOPES } from '../../signer/api/operations.ts';
import { runWithRoot } from './run-operator.ts';

const folder = mkdtempSync(join(tmpdir(), 'strongroom-rules-'));
afterAll(() => rmSync(folder, { recursive: true }));

const GUIDE = readFileSync(new URL('../../docs/guides/authorization.md', import.meta.url), 'utf8');
const [, PAYMENTS = ''] = /```yaml\n(rules:\n[\s\S]*?)```/.exec(GUIDE) ?? [];
const RULE = { effect: 'allow', scopes: ['sign'] } as const;

function rulesIn(name: string, content: string) {
  writeFileSync(join(folder, name), content);
  return rulesOf({ rules: `@${join(folder, name)}` });
}

function refusalOf(run: () => unknown): string {
  try {
    run();
    return 'it was taken';
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error;
    return `${error.message}; ${error.advice ?? ''}`;
  }
}

it('the rules of the guide are taken as they stand there', () => {
  const [duties, payments, envelopes, builders, list] = rulesIn('rules.yaml', PAYMENTS);
  expect(duties?.operations).toContain('ATTESTATION');
  expect(payments).toMatchObject({ fee_recipients: ['0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed'] });
  expect(envelopes).toMatchObject({ builder_indices: ['self'], only_for_own_blocks: true });
  expect(builders).toMatchObject({ builders: ['builder.example.org'] });
  expect(list).toEqual({ effect: 'allow', scopes: ['public_keys'] });
});

describe('the preset of a validator client with its payments held', () => {
  const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed';
  const of = (flags: Partial<Parameters<typeof rulesOf>[0]>) => rulesOf({ preset: 'validator-client', ...flags });

  it('has rules of their own for what pays, and allows it nowhere else', () => {
    const [duties, ...others] = of({ 'fee-recipient': [ADDRESS], 'max-gas-limit': '60000000', builder: ['b.example'] });
    for (const paid of ['PROPOSER_PREFERENCES', 'VALIDATOR_REGISTRATION', 'EXECUTION_PAYLOAD_ENVELOPE']) {
      expect(duties?.operations).not.toContain(paid);
    }
    expect(duties?.operations).not.toContain('BUILDER_REQUEST_AUTH');
    expect(duties?.operations).toContain('ATTESTATION');
    expect(others).toEqual([
      {
        effect: 'allow',
        scopes: ['sign'],
        operations: ['PROPOSER_PREFERENCES', 'VALIDATOR_REGISTRATION'],
        fee_recipients: [ADDRESS.toLowerCase()],
        max_gas_limit: 60_000_000,
      },
      {
        effect: 'allow',
        scopes: ['sign'],
        fee_recipients: [ADDRESS.toLowerCase()],
        max_gas_limit: 60_000_000,
        builder_indices: ['self'],
        only_for_own_blocks: true,
      },
      { effect: 'allow', scopes: ['sign'], builders: ['b.example'] },
      { effect: 'allow', scopes: ['public_keys'] },
    ]);
  });

  it('with builders alone leaves payments as they are', () => {
    const [duties, builders] = of({ builder: ['b.example'] });
    expect(duties?.operations).toContain('PROPOSER_PREFERENCES');
    expect(duties?.operations).not.toContain('BUILDER_REQUEST_AUTH');
    expect(builders).toEqual({ effect: 'allow', scopes: ['sign'], builders: ['b.example'] });
  });

  it.each<[Partial<Parameters<typeof rulesOf>[0]>, RegExp]>([
    [{ 'fee-recipient': ['0x5aaeb6053F3E94C9b9A09f33669435E7Ef1BeAed'] }, /--preset validator-client: .*checksum/],
    [{ 'max-gas-limit': '-1' }, /--max-gas-limit is a whole number/],
    [{ preset: 'monitoring', builder: ['b.example'] }, /go with --preset validator-client/],
  ])('refuses %j', (flags, words) => {
    expect(() => of(flags)).toThrow(words);
  });
});

it('a list, or an object with it alone, in JSON and YAML; a preset instead', () => {
  expect(rulesOf({ rules: JSON.stringify([RULE]) })).toEqual([RULE]);
  expect(rulesIn('rules.json', JSON.stringify({ rules: [RULE] }))).toEqual([RULE]);
  expect(rulesIn('rules.yml', '- { effect: allow, scopes: [sign] }\n')).toEqual([RULE]);
  expect(rulesOf({ preset: 'break-glass' })).toEqual(PRESETS['break-glass']);
});

it('what is more than rules, what says a thing twice, and a number for an address are refused', () => {
  const whole = JSON.stringify({ name: 'a', rules: [RULE] });
  expect(refusalOf(() => rulesOf({ rules: 'rules.json' }))).toMatch(/not JSON.*; write a list of rules, .* or @FILE/);
  expect(refusalOf(() => rulesOf({ rules: whole }))).toMatch(/an object with the member rules alone; .*jq \.rules/);
  expect(refusalOf(() => rulesIn('twice.yaml', 'rules: []\nrules: []\n'))).toMatch(/twice\.yaml line 2: /);
  expect(refusalOf(() => rulesIn('alias.yaml', '- &a { effect: allow }\n- *a\n'))).toMatch(/alias\.yaml line \d: /);
  expect(refusalOf(() => rulesIn('rules.txt', PAYMENTS))).toMatch(/not JSON.*; .*ends in \.yaml/);
  const number = PAYMENTS.replaceAll('"', '');
  expect(refusalOf(() => rulesIn('number.yaml', number))).toMatch(/quote it, because YAML reads 0x… as a number/);
});

it('the beginning of a name is enough to say which was meant, where one alone begins so', () => {
  const refusal = (rule: object) => refusalOf(() => rulesOf({ rules: JSON.stringify([{ effect: 'allow', ...rule }]) }));
  expect(refusal({ operations: ['ATTEST'] })).toContain('"ATTEST", did you mean ATTESTATION?');
  expect(refusal({ operations: ['attest'] })).toContain('"attest", did you mean ATTESTATION?');
  expect(refusal({ operations: ['SYNC_COMM'] })).not.toContain('did you mean');
  expect(refusal({ scopes: ['slashing'] })).toContain('did you mean slashing_protection?');
});

it.each([80, 120])('a refusal fits a terminal of %i columns, and no word of it is torn', async (columns) => {
  const given = ['auth', 'policy', 'create', '--name', 'a', '--rules', '[{"effect":"allow","scopes":["sing"]}]'];
  const { code, stderr } = await runWithRoot(given, { rootFingerprint: '', columns });
  expect(code).toBe(1);
  expect(Math.max(...stderr.split('\n').map((line) => line.length))).toBeLessThanOrEqual(columns);
  expect(stderr.split(/[\s,()]+/)).toEqual(expect.arrayContaining(['"sing"', 'sign?', ...SCOPES]));
  const { stderr: piped } = await runWithRoot(given, { rootFingerprint: '' });
  expect(piped.split('\n')).toHaveLength(3);
});
