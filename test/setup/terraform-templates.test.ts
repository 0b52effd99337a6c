// What the templates of deploy/terraform come to: the policies are those that `strongroom setup` prints, and
// enclave.yaml is a configuration that an image and its parent take. Terraform renders the same texts, where it is.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { keyPolicy, keyPolicyStatements } from '../../setup/key-policy.ts';
import { PHASES, policyOf } from '../../setup/policy-document.ts';
import {
  parentPolicy,
  recoveryPolicy,
  signerPolicy,
  tableResourcePolicy,
  tablesPolicy,
} from '../../setup/role-policy.ts';
import { TABLES } from '../../setup/table-permissions.ts';
import { keyArn, loadGood, multiRegionArn } from '../config/loading.ts';
import { lacking } from '../support/needs.ts';
import { renderTemplate } from '../support/terraform-template.ts';
import {
  ENCLAVE_VALUES,
  IMAGES,
  KEY_VALUES,
  ROOT,
  rendered,
  request,
  role,
  tableArn,
  template,
} from './terraform-templates.ts';

describe('the policies', () => {
  it.each(PHASES)('of a custody key are those that are printed, in the phase %s', (phase) => {
    for (const sealers of [[], [role('sealer')]]) {
      const values = { ...KEY_VALUES, phase, sealers };
      for (const count of [1, 2, 3]) {
        const images = IMAGES.slice(0, count);
        const document = rendered('custody-key/key-policy.json.tftpl', { ...values, images });
        expect(document).toEqual(keyPolicy(request(images, phase, sealers)));
        const unsafe = { ...values, images, unsafe_parents_encrypt: true, encrypting: KEY_VALUES.signers };
        expect(rendered('custody-key/key-policy.json.tftpl', unsafe)).toEqual(
          keyPolicy({ ...request(images, phase, sealers), tableUsers: 'the signers' }),
        );
      }
      const unattested = {
        ...request([], phase, sealers),
        images: 'without attestation',
        tableUsers: 'the signers',
      } as const;
      expect(rendered('custody-key/key-policy-unattested.json.tftpl', { ...values, images: [] })).toEqual(
        keyPolicy(unattested),
      );
    }
  });

  it('of a key before there is an image let nobody decrypt, and deny it without attestation', () => {
    const document = rendered('custody-key/key-policy.json.tftpl', {
      ...KEY_VALUES,
      phase: 'running',
      sealers: [],
      images: [],
    });
    const statements = keyPolicyStatements(request([], 'running', []));
    expect(document).toEqual(policyOf(statements.map(({ statement }) => statement)));
    const decrypting = statements.filter(({ statement }) => statement.Action.includes('kms:Decrypt'));
    expect(decrypting.map(({ statement }) => statement.Effect)).toEqual(['Deny']);
  });

  it('of roles and tables are those that are printed, and those of the user fit into a user’s', () => {
    const arns = { state: 'arn:state', keys: 'arn:keys', slashing: 'arn:slashing' };
    const tables = Object.fromEntries(TABLES.map((kind) => [kind, { arn: arns[kind], isPinned: true }]));
    const keyArns = [keyArn(1), keyArn(2)];
    const values = {
      key_arns: keyArns,
      ...Object.fromEntries(TABLES.map((kind) => [`${kind}_table_arn`, arns[kind]])),
    };
    for (const phase of PHASES) {
      const of = (name: string) => rendered(`signer/policies/${name}-${phase}.json.tftpl`, values);
      expect(of('signer')).toEqual(signerPolicy({ keyArns, tables, phase }));
      expect(of('tables')).toEqual(tablesPolicy({ keyArns, tables, phase }));
      // What a signer calls, whoever asks, and nothing else.
      const { Statement: own } = tablesPolicy({ keyArns, tables, phase });
      const Statement = own.filter(({ Sid }) => Sid !== 'CustodyKeys');
      expect(of('endpoint')).toEqual(policyOf(Statement.map((statement) => ({ ...statement, Principal: '*' }))));
      expect(JSON.stringify(of('endpoint'))).not.toContain('dynamodb:*');
      // IAM quotas: 2,048 characters for all policies within a user; a table's ARN has up to 320
      expect(JSON.stringify(of('tables')).length + 3 * 120).toBeLessThan(2048);
    }
    expect(rendered('signer/policies/parent.json.tftpl', values)).toEqual(parentPolicy(keyArns));
    expect(rendered('signer/policies/recovery.json.tftpl', values)).toEqual(recoveryPolicy(arns.state));
    const resource = { table_arn: 'arn:table', kept_out: [role('parent')] };
    for (const kind of TABLES) {
      expect(rendered(`signer/policies/table-${kind}-not-the-parents.json.tftpl`, resource)).toEqual(
        tableResourcePolicy(kind, 'arn:table', [role('parent')]),
      );
    }
    expect(rendered('signer/policies/table-slashing.json.tftpl', resource)).toEqual(
      tableResourcePolicy('slashing', 'arn:table', []),
    );
  });
});

it.skipIf(lacking('terraform'))('Terraform itself renders the templates to the same texts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-terraform-'));
  const cases = [
    ['custody-key/key-policy.json.tftpl', { ...KEY_VALUES, phase: 'rotation', sealers: [role('x')], images: IMAGES }],
    ['custody-key/key-policy.json.tftpl', { ...KEY_VALUES, phase: 'running', sealers: [], images: [] }],
    ['signer/enclave.yaml.tftpl', ENCLAVE_VALUES],
  ] as const;
  writeFileSync(join(folder, 'cases.json'), JSON.stringify(cases.map(([, values]) => values)));
  const calls = cases.map(([path], at) => `templatefile("${join(ROOT, path)}", jsondecode(file("cases.json"))[${at}])`);
  const { stdout, stderr } = spawnSync('terraform', ['console'], {
    cwd: folder,
    input: `jsonencode([${calls.join(', ')}])\n`,
    encoding: 'utf8',
    env: { ...process.env, TF_CLI_CONFIG_FILE: '/dev/null', CHECKPOINT_DISABLE: '1' },
  });
  rmSync(folder, { recursive: true });
  expect(stderr).toBe('');
  const texts = JSON.parse(JSON.parse(stdout.trim()) as string) as readonly string[];
  expect(texts).toEqual(cases.map(([path, values]) => renderTemplate(template(path), values)));
});

it('the output enclave_yaml is a configuration that an image and its parent take', () => {
  const yaml = renderTemplate(template('signer/enclave.yaml.tftpl'), ENCLAVE_VALUES);
  const arns = [multiRegionArn(1, 'eu-central-1'), multiRegionArn(1, 'eu-west-1')];
  const compiledCeremony = parseCeremony({
    generation: 1,
    kms_threshold: 1,
    kms_keys: [{ arns }],
    root_token_recipients: ['age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'],
  });
  const config = loadGood({ yaml, build: { compiledCeremony } });
  const unsafe = renderTemplate(template('signer/enclave.yaml.tftpl'), { ...ENCLAVE_VALUES, unsafe: true });
  expect(loadGood({ yaml: unsafe, build: { compiledCeremony } }).tee.nitro.unsafe_parent_writes_tables).toBe(true);
  expect(config.anti_slashing).toMatchObject({ backend: 'dynamodb', table: tableArn('slashing') });
  const loaded = readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml');
  expect(loaded.ok && loaded.configuration.options.ingress.probes.listen_address).toBe('0.0.0.0');
});
