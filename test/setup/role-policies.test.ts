// What `strongroom setup iam` prints, and what it refuses: each table has its own list, and nothing deletes slashing
// records.

import { describe, expect, it } from 'vitest';
import { PHASES, type PolicyDocument } from '../../setup/policy-document.ts';
import { isAllowed } from '../support/policy-judge.ts';
import { ACCOUNT, ENDPOINTS, HOME, KEY, PARENT, printed, run, write } from './printed-documents.ts';

describe('the policies of roles and tables', () => {
  const iam = (...argv: readonly string[]) => printed('iam', ...argv);
  const actions = ({ Statement }: PolicyDocument) => Statement.flatMap(({ Action }) => Action);

  const CEREMONY = ['--ceremony', '@ceremony.yaml'];

  it('name each table with its own list', async () => {
    const { Statement } = await iam('-c', '@enclave.yaml', ...CEREMONY, '--for', 'tables', '--phase', 'first-boot');
    expect(Object.fromEntries(Statement.map(({ Resource, Action }) => [Resource, Action.length]))).toEqual({
      [KEY]: 1, // Encrypt
      [`arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/state`]: 7,
      [`arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/keys`]: 4,
      [`arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/slashing`]: 6, // by ARN there are no statements
    });
  });

  it('have no action of a transaction, and nothing that deletes slashing records', async () => {
    for (const phase of PHASES) {
      const document = await iam('-c', '@enclave.yaml', ...CEREMONY, '--for', 'tables', '--phase', phase);
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
    for (const file of ['@sealed.yaml', '@enclave.yaml']) {
      for (const phase of PHASES) {
        const document = await iam('-c', file, ...CEREMONY, '--for', 'signer', '--phase', phase);
        expect(actions(document)).toEqual(['kms:Decrypt', 'kms:DescribeKey']);
        expect(document.Statement[0]?.Resource).toEqual([KEY]);
      }
    }
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
      ['-c', '@unsafe.yaml', '--for', 'table', '--table', 'state'],
      'needs no policy of its own',
    ],
    [
      'a table that the parents reach',
      ['-c', '@enclave.yaml', '--for', 'table', '--table', 'slashing'],
      "needs --keep-out ARN, the parents' role",
    ],
    [
      'a user of tables that the signer calls',
      ['-c', '@unsafe.yaml', '--for', 'tables'],
      'the tables have no user of their own here',
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
