// What `strongroom setup kms-policy` and `setup iam` print, and what they refuse: nobody is locked out of a key, nobody
// who administers it opens anything, and each table has its own list. The judge of the tests says what is allowed.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ADMINISTRATION_ACTIONS, MAX_KEY_POLICY_BYTES } from '../../setup/key-policy.ts';
import { main } from '../../setup/main.ts';
import { PHASES, type PolicyDocument } from '../../setup/policy-document.ts';
import { isAllowed } from '../support/policy-judge.ts';

const ACCOUNT = '111122223333';
const principal = (name: string, account = ACCOUNT) => `arn:aws:iam::${account}:role/${name}`;
const ADMIN = principal('custody-admin');
const PARENT = principal('strongroom-parent');
const SEALER = principal('sealer');
const HOME = ['--account', ACCOUNT, '--region', 'eu-central-1'];
const KEY = `arn:aws:kms:eu-central-1:${ACCOUNT}:key/00000000-0000-4000-8000-000000000001`;
const RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj';
const CEREMONY = { generation: 1, kms_threshold: 1, kms_keys: [{ arns: [KEY] }], root_token_recipients: [RECIPIENT] };
const hex = (digit: string): string => digit.repeat(96);
const IMAGE = { PCR0: hex('a'), PCR1: hex('1'), PCR2: hex('2'), PCR16: hex('b'), PCR17: hex('c') };

let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-documents-'));
  const signer_state = { backend: 'dynamodb', table: 'state', deployment_id: 'mainnet-eu' };
  const anti_slashing = { backend: 'dynamodb', table: 'slashing' };
  write('service.yaml', { signer_state, anti_slashing, ceremony: CEREMONY });
  write('enclave.yaml', {
    signer_state: { ...signer_state, table: `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/state` },
    anti_slashing: { ...anti_slashing, table: `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/slashing` },
    key_sources: { dynamodb: { table: `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/keys` } },
    tls: { mode: 'ratls' },
    tee: { platform: 'nitro', nitro: { egress: { endpoints: ENDPOINTS } } },
  });
  write('ceremony.yaml', CEREMONY);
  write('pcrs.json', { measurements: IMAGE });
  write('next.json', { measurements: { ...IMAGE, PCR0: hex('d'), PCR16: hex('e') } });
  write('fetched.json', { measurements: { PCR0: hex('a'), PCR17: hex('c') } });
  write('foreign.json', { measurements: { PCR0: hex('a'), PCR16: hex('b') } });
  write('debug.json', { measurements: { ...IMAGE, PCR0: hex('0') } });
  write('stateless.yaml', { network: 'mainnet' });
});
afterAll(() => rmSync(folder, { recursive: true }));

const ENDPOINTS = [
  { hostname: 'dynamodb.eu-central-1.amazonaws.com', loopback: '127.0.1.1', vsock_port: 8001 },
  { hostname: 'kms.eu-central-1.amazonaws.com', loopback: '127.0.1.2', vsock_port: 8002 },
];

function write(name: string, content: object): void {
  writeFileSync(join(folder, name), stringify(content));
  if (name.endsWith('.json')) writeFileSync(join(folder, name), JSON.stringify(content));
}

async function run(...argv: readonly string[]) {
  const said = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') =>
    ({ write: (text: string) => (said[name] += text) }) as unknown as NodeJS.WritableStream;
  const code = await main(
    argv.map((word) => word.replace(/^@/, `${folder}/`)),
    { env: {}, stdout: stream('stdout'), stderr: stream('stderr') },
  );
  return { code, ...said };
}

async function printed(...argv: readonly string[]): Promise<PolicyDocument> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as PolicyDocument;
}

const WHO = ['--administrator', ADMIN, '--signer', PARENT];
const enclaveKey = (...argv: readonly string[]) => printed('kms-policy', '-c', '@enclave.yaml', ...WHO, ...argv);
const PCRS = ['--pcrs', '@pcrs.json'];

function attested(registers: { readonly PCR0: string; readonly PCR16: string; readonly PCR17: string }) {
  return {
    'kms:RecipientAttestation:ImageSha384': registers.PCR0,
    'kms:RecipientAttestation:PCR0': registers.PCR0,
    'kms:RecipientAttestation:PCR16': registers.PCR16,
    'kms:RecipientAttestation:PCR17': registers.PCR17,
  };
}

const MAINNET = '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95';
const SHARE = {
  'kms:EncryptionContext:service': 'strongroom',
  'kms:EncryptionContext:network': MAINNET,
  'kms:EncryptionContext:deployment': 'mainnet-eu',
};
const CREDENTIALS = {
  'kms:EncryptionContext:service': 'strongroom',
  'kms:EncryptionContext:purpose': 'table-credentials',
};

function may(
  document: PolicyDocument,
  caller: string,
  action: string,
  context: Readonly<Record<string, string>> = {},
): boolean {
  return isAllowed([document], { action, resource: '*', principal: caller, context });
}

describe('the policy of a custody key', () => {
  it.each(PHASES)(
    'in the phase %s locks out nobody who administers the key, and gives them nothing else',
    async (phase) => {
      const document = await enclaveKey(...PCRS, '--phase', phase, '--sealer', SEALER);
      for (const action of ADMINISTRATION_ACTIONS) {
        expect([action, may(document, ADMIN, action)]).toEqual([action, true]);
        // when the administrator's role is gone: its account, by its own policies, or its root user
        expect([action, may(document, `arn:aws:iam::${ACCOUNT}:root`, action)]).toEqual([action, true]);
        expect([action, may(document, principal('x', '999988887777'), action)]).toEqual([action, false]);
      }
      for (const caller of [ADMIN, `arn:aws:iam::${ACCOUNT}:root`, principal('x')]) {
        for (const action of [
          'kms:Encrypt',
          'kms:Decrypt',
          'kms:CreateGrant',
          'kms:ReEncryptFrom',
          'kms:ReEncryptTo',
        ]) {
          expect([caller, action, may(document, caller, action, { ...SHARE, ...attested(IMAGE) })]).toEqual([
            caller,
            action,
            false,
          ]);
        }
      }
      expect(ADMINISTRATION_ACTIONS).toContain('kms:PutKeyPolicy');
    },
  );

  it('decrypts for the image, its configuration and its ceremony together, and this deployment', async () => {
    const document = await enclaveKey(...PCRS);
    const decrypts = (context: Readonly<Record<string, string>>) => may(document, PARENT, 'kms:Decrypt', context);
    expect(decrypts({ ...SHARE, ...attested(IMAGE) })).toBe(true);
    expect(decrypts({ ...CREDENTIALS, ...attested(IMAGE) })).toBe(true);
    expect(decrypts(SHARE)).toBe(false);
    for (const register of ['PCR0', 'PCR16', 'PCR17'] as const) {
      expect([register, decrypts({ ...SHARE, ...attested({ ...IMAGE, [register]: hex('f') }) })]).toEqual([
        register,
        false,
      ]);
    }
    expect(decrypts({ ...SHARE, 'kms:EncryptionContext:deployment': 'other', ...attested(IMAGE) })).toBe(false);
    expect(decrypts(attested(IMAGE))).toBe(false);
    expect(may(document, principal('x'), 'kms:Decrypt', { ...SHARE, ...attested(IMAGE) })).toBe(false);
    expect(may(document, PARENT, 'kms:PutKeyPolicy')).toBe(false);
    expect(may(document, PARENT, 'kms:DescribeKey')).toBe(true);
  });

  it('for two images accepts each of them whole, and no mixture of their registers', async () => {
    const document = await enclaveKey(...PCRS, '--pcrs', '@next.json');
    const next = { ...IMAGE, PCR0: hex('d'), PCR16: hex('e') };
    const decrypts = (image: typeof IMAGE) => may(document, PARENT, 'kms:Decrypt', { ...SHARE, ...attested(image) });
    expect([IMAGE, next].map(decrypts)).toEqual([true, true]);
    expect(
      [
        { ...IMAGE, PCR16: next.PCR16 },
        { ...next, PCR16: IMAGE.PCR16 },
      ].map(decrypts),
    ).toEqual([false, false]);
  });

  it('encrypts shares in a phase that needs it, and table credentials for those who seal them', async () => {
    const encrypts = async (phase: string, caller: string, context: Readonly<Record<string, string>>) =>
      may(await enclaveKey(...PCRS, '--phase', phase, '--sealer', SEALER), caller, 'kms:Encrypt', context);
    expect(await encrypts('running', PARENT, SHARE)).toBe(false);
    expect(await encrypts('first-boot', PARENT, SHARE)).toBe(true);
    expect(await encrypts('rotation', PARENT, { ...SHARE, 'kms:EncryptionContext:deployment': 'other' })).toBe(false);
    expect(await encrypts('running', SEALER, CREDENTIALS)).toBe(true);
    expect(await encrypts('first-boot', SEALER, SHARE)).toBe(false);
  });

  it('of an image that fetches has the PCR16 of the configuration, and says so', async () => {
    const { code, stdout, stderr } = await run('kms-policy', '-c', '@enclave.yaml', ...WHO, '--pcrs', '@fetched.json');
    expect(code).toBe(0);
    expect(stderr).toContain('fetched.json has no PCR16');
    const check = await import('../../parent-proxy/configuration.ts');
    const { readFileSync } = await import('node:fs');
    const loaded = check.readProxyConfiguration(readFileSync(join(folder, 'enclave.yaml')), 'enclave.yaml');
    expect(loaded.ok && loaded.configuration.pcr16).toMatch(/^[0-9a-f]{96}$/);
    expect(stdout).toContain(String(loaded.ok && loaded.configuration.pcr16));
    const { stdout: given } = await run(
      'kms-policy',
      '-c',
      '@enclave.yaml',
      ...WHO,
      '--pcrs',
      '@fetched.json',
      '--pcr',
      `16=${hex('9')}`,
    );
    expect(given).toContain(hex('9'));
  });

  it('of a service that runs in no enclave asks for no attestation', async () => {
    const document = await printed('kms-policy', '-c', '@service.yaml', ...WHO);
    expect(may(document, PARENT, 'kms:Decrypt', SHARE)).toBe(true);
    expect(may(document, ADMIN, 'kms:Decrypt', SHARE)).toBe(false);
  });

  it.each([
    ['an enclave without its image', ['-c', '@enclave.yaml', ...WHO], 'name its image with --pcrs'],
    ['an image of no enclave', ['-c', '@service.yaml', ...WHO, ...PCRS], 'tee.platform off'],
    [
      'an administrator who is the signer',
      ['-c', '@service.yaml', '--administrator', PARENT, '--signer', PARENT],
      'could open the master key',
    ],
    [
      'administrators of two accounts',
      ['-c', '@service.yaml', ...WHO, '--administrator', principal('b', '999988887777')],
      'of another account',
    ],
    [
      'a session',
      ['-c', '@service.yaml', '--administrator', ADMIN, '--signer', `arn:aws:sts::${ACCOUNT}:assumed-role/a/b`],
      'name its role',
    ],
    [
      'the account as an administrator',
      ['-c', '@service.yaml', '--administrator', `arn:aws:iam::${ACCOUNT}:root`, '--signer', PARENT],
      'is not the ARN of a role or a user',
    ],
    ['no administrator', ['-c', '@service.yaml', '--signer', PARENT], '--administrator ARN is needed'],
    ['registers of debug mode', ['-c', '@enclave.yaml', ...WHO, '--pcrs', '@debug.json'], 'debug mode'],
    ['an image of any ceremony', ['-c', '@enclave.yaml', ...WHO, '--pcrs', '@foreign.json'], 'PCR17 is missing'],
    ['a file that is not there', ['-c', '@enclave.yaml', ...WHO, '--pcrs', '@none.json'], 'cannot be read (ENOENT)'],
    [
      'an unknown phase',
      ['-c', '@service.yaml', ...WHO, '--phase', 'steady'],
      '--phase is one of running, first-boot, rotation',
    ],
    ['a stray word', ['-c', '@service.yaml', ...WHO, 'now'], 'flags only'],
    ['a signer without a state', ['-c', '@stateless.yaml', ...WHO], 'there is no custody ceremony'],
    [
      'more images than KMS takes',
      ['-c', '@enclave.yaml', ...WHO, ...Array.from({ length: 60 }, () => PCRS).flat()],
      `KMS takes ${MAX_KEY_POLICY_BYTES}`,
    ],
  ])('refuses %s, with exit code 1 and nothing on stdout', async (_what, argv, words) => {
    const { code, stdout, stderr } = await run('kms-policy', ...argv);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^strongroom setup kms-policy: /);
    expect(stderr).toContain(words);
  });
});

describe('the policies of roles and tables', () => {
  const iam = (...argv: readonly string[]) => printed('iam', ...argv);
  const actions = ({ Statement }: PolicyDocument) => Statement.flatMap(({ Action }) => Action);

  it('name each table with its own list', async () => {
    const { Statement } = await iam('-c', '@enclave.yaml', '--for', 'tables', '--phase', 'first-boot');
    expect(Object.fromEntries(Statement.map(({ Resource, Action }) => [Resource, Action.length]))).toEqual({
      [`arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/state`]: 7,
      [`arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/keys`]: 4,
      [`arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/slashing`]: 6, // by ARN there are no statements
    });
  });

  it('have no action of a transaction, and nothing that deletes slashing records', async () => {
    for (const phase of PHASES) {
      const document = await iam('-c', '@enclave.yaml', '--for', 'tables', '--phase', phase);
      expect(actions(document).filter((action) => /Transact|\*/.test(action))).toEqual([]);
      const slashing = document.Statement.find(({ Sid }) => Sid === 'SlashingTable')?.Action ?? [];
      expect(slashing.filter((action) => /Delete|BatchWrite/.test(action))).toEqual([]);
    }
  });

  it('of a parent with sealed table credentials have no table', async () => {
    const credentials = { ciphertext: Buffer.alloc(200).toString('base64'), key_arn: KEY };
    const sealed = { platform: 'nitro', nitro: { egress: { endpoints: ENDPOINTS }, table_credentials: credentials } };
    const table = `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/state`;
    write('sealed.yaml', {
      signer_state: { backend: 'dynamodb', table },
      anti_slashing: { backend: 'dynamodb', table: `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/slashing` },
      tls: { mode: 'ratls' },
      tee: sealed,
    });
    const document = await iam('-c', '@sealed.yaml', '--ceremony', '@ceremony.yaml', '--for', 'signer');
    expect(actions(document)).toEqual(['kms:Decrypt', 'kms:DescribeKey']);
    expect(document.Statement[0]?.Resource).toEqual([KEY]);
    const own = await iam('-c', '@sealed.yaml', '--for', 'table', '--table', 'state', '--keep-out', PARENT);
    expect(isAllowed([own], { action: 'dynamodb:GetItem', resource: table, principal: PARENT })).toBe(false);
    expect(own.Statement).toHaveLength(1);
  });

  it.each([
    [
      'tables without an account',
      ['-c', '@service.yaml', '--for', 'signer'],
      '--account 111122223333 --region eu-central-1',
    ],
    ['an enclave without its ceremony', ['-c', '@enclave.yaml', '--for', 'signer'], '--ceremony ceremony.yaml'],
    [
      'a ceremony beside a ceremony',
      ['-c', '@service.yaml', '--for', 'signer', '--ceremony', '@ceremony.yaml', ...HOME],
      'has its own',
    ],
    [
      'an unknown subject',
      ['-c', '@service.yaml', '--for', 'signers', ...HOME],
      '--for is one of signer, tables, recovery, setup, table',
    ],
    ['a table that is not named', ['-c', '@enclave.yaml', '--for', 'table'], '--table state|keys|slashing'],
    [
      'a table that is not there',
      ['-c', '@service.yaml', '--for', 'table', '--table', 'keys', ...HOME],
      'names no keys table',
    ],
    [
      'a table without need of a policy',
      ['-c', '@enclave.yaml', '--for', 'table', '--table', 'state'],
      'needs no policy of its own',
    ],
    [
      'nobody to keep out',
      ['-c', '@enclave.yaml', '--for', 'table', '--table', 'state', '--keep-out', 'parent'],
      'is not the ARN',
    ],
    ['a signer without tables', ['-c', '@stateless.yaml', '--for', 'setup'], 'names no DynamoDB table'],
  ])('refuse %s', async (_what, argv, words) => {
    const { code, stdout, stderr } = await run('iam', ...argv);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^strongroom setup iam: /);
    expect(stderr).toContain(words);
  });

  it('a configuration that cannot be used ends with 78 and its violations', async () => {
    write('broken.yaml', { netwrk: 'mainnet' });
    const { code, stdout, stderr } = await run('iam', '-c', '@broken.yaml', '--for', 'setup');
    expect({ code, stdout }).toEqual({ code: 78, stdout: '' });
    expect(stderr).toContain('1 violation');
  });
});

it('a mistyped command is told from one that exists', async () => {
  expect(await run()).toMatchObject({ code: 1, stdout: '' });
  expect((await run('kms-polcy')).stderr).toContain('did you mean kms-policy?');
});
