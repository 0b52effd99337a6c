// deploy/terraform, as far as it goes without AWS and its provider: its policies are those that `strongroom setup`
// prints, its tables those that `setup tables` makes, and each resource means what the guide promises. What it says of
// references and of modules is looked at here as `terraform validate` would.

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parseCeremony } from '../../ceremony/definition.ts';
import { stateTableDefinition } from '../../enclave/chamber/state-rows.ts';
import { keyTableDefinition } from '../../enclave/keys/table/rows.ts';
import { slashingTableDefinition } from '../../enclave/slashing/dynamodb/items.ts';
import { readProxyConfiguration } from '../../parent-proxy/configuration.ts';
import { type KeyPolicyRequest, keyPolicy, keyPolicyStatements } from '../../setup/key-policy.ts';
import { PHASES, policyOf } from '../../setup/policy-document.ts';
import { recoveryPolicy, signerPolicy, tableResourcePolicy, tablesPolicy } from '../../setup/role-policy.ts';
import { TABLES } from '../../setup/table-permissions.ts';
import { keyArn, loadGood, multiRegionArn } from '../config/loading.ts';
import { type Block, blockIn, type Module, readModule } from '../support/terraform-module.ts';
import { renderTemplate } from '../support/terraform-template.ts';

const ROOT = join(import.meta.dirname, '../../deploy/terraform');
const ACCOUNT = '111122223333';
const role = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${name}`;
const hex = (digit: string) => digit.repeat(96);
/** As the parser gives an expression that is not a literal. */
const expression = (text: string): string => `\${${text}}`;

let key: Module;
let signer: Module;
let example: Module;

beforeAll(async () => {
  [key, signer, example] = (await Promise.all(
    ['custody-key', 'signer', 'example'].map((name) => readModule(join(ROOT, name))),
  )) as [Module, Module, Module];
});

const template = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const rendered = (path: string, values: object): unknown =>
  JSON.parse(renderTemplate(template(path), values as Record<string, unknown>));

const IMAGES = ['a', 'b', 'c'].map((digit) => ({ PCR0: hex(digit), PCR16: hex('1'), PCR17: hex('2') }));
const KEY_VALUES = {
  administrators: [role('admin'), role('second-admin')],
  account: `arn:aws:iam::${ACCOUNT}:root`,
  signers: [role('parent')],
  network: `0x${'4b'.repeat(32)}`,
  deployment_id: 'mainnet-eu',
};

function request(
  images: typeof IMAGES,
  phase: KeyPolicyRequest['phase'],
  sealers: readonly string[],
): KeyPolicyRequest {
  return {
    administrators: KEY_VALUES.administrators,
    signers: KEY_VALUES.signers,
    images: images.map(({ PCR0, PCR16, PCR17 }) => ({ imageSha384: [PCR0], pcr16: [PCR16], pcr17: [PCR17] })),
    phase,
    deployment: { network: KEY_VALUES.network, id: KEY_VALUES.deployment_id },
    sealers,
  };
}

describe('the policies', () => {
  it.each(PHASES)('of a custody key are those that are printed, in the phase %s', (phase) => {
    for (const sealers of [[], [role('sealer')]]) {
      const values = { ...KEY_VALUES, phase, sealers };
      for (const count of [1, 2, 3]) {
        const images = IMAGES.slice(0, count);
        const document = rendered('custody-key/key-policy.json.tftpl', { ...values, images });
        expect(document).toEqual(keyPolicy(request(images, phase, sealers)));
      }
      const unattested = { ...request([], phase, sealers), images: 'without attestation' } as const;
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
      expect(of('keys-only')).toEqual(signerPolicy({ keyArns, tables: {}, phase }));
      expect(of('tables')).toEqual(tablesPolicy(tables, phase));
      // What a signer calls, whoever asks, and nothing else.
      const { Statement } = tablesPolicy(tables, phase);
      expect(of('endpoint')).toEqual(policyOf(Statement.map((statement) => ({ ...statement, Principal: '*' }))));
      expect(JSON.stringify(of('endpoint'))).not.toContain('dynamodb:*');
      // IAM quotas: 2,048 characters for all policies within a user; a table's ARN has up to 320
      expect(JSON.stringify(of('tables')).length + 3 * 120).toBeLessThan(2048);
    }
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

const hasTerraform = spawnSync('terraform', ['version']).status === 0;

it.runIf(hasTerraform)('Terraform itself renders the templates to the same texts', () => {
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

const tableArn = (name: string) => `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/strongroom-${name}`;
const ENCLAVE_VALUES = {
  region: 'eu-central-1',
  deployment_id: 'mainnet-eu',
  state_table_arn: tableArn('state'),
  keys_table_arn: tableArn('keys'),
  slashing_table_arn: tableArn('slashing'),
  kms_regions: ['eu-central-1', 'eu-west-1'],
};

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
  expect(config.anti_slashing).toMatchObject({ backend: 'dynamodb', table: tableArn('slashing') });
  const loaded = readProxyConfiguration(Buffer.from(yaml), 'enclave.yaml');
  expect(loaded.ok && loaded.configuration.options.ingress.probes.listen_address).toBe('0.0.0.0');
});

describe('the tables', () => {
  it.each([
    ['state', stateTableDefinition('x')],
    ['keys', keyTableDefinition('x')],
    ['slashing', slashingTableDefinition('x')],
  ] as const)('%s is the one that `setup tables` makes, and can neither be lost nor replaced', (kind, definition) => {
    const table = resource(signer, `aws_dynamodb_table.${kind}`);
    const [hash, range] = definition.KeySchema ?? [];
    expect(table).toMatchObject({
      billing_mode: definition.BillingMode,
      deletion_protection_enabled: definition.DeletionProtectionEnabled,
      hash_key: hash?.AttributeName,
      attribute: definition.AttributeDefinitions?.map(({ AttributeName, AttributeType }) => ({
        name: AttributeName,
        type: AttributeType,
      })),
      point_in_time_recovery: [{ enabled: true }],
      server_side_encryption: [{ enabled: true, kms_key_arn: expression('var.tables_kms_key_arn') }],
      lifecycle: [{ prevent_destroy: true }],
    });
    expect(table['range_key']).toBe(range?.AttributeName);
    expect(Object.keys(table)).not.toContain('replica'); // the slashing table is bound to one region
  });

  it('refuse the parents with sealed credentials, and always whoever deletes slashing records', () => {
    for (const kind of TABLES) {
      const policy = resource(signer, `aws_dynamodb_resource_policy.${kind}`);
      expect(policy['resource_arn']).toBe(`\${aws_dynamodb_table.${kind}.arn}`);
      expect(policy['policy']).toContain(`table-${kind}`);
      expect(policy['policy']).toContain('kept_out = [aws_iam_role.parent.arn]');
      expect(policy['count']).toBe(
        kind === 'slashing' ? undefined : expression('var.sealed_table_credentials ? 1 : 0'),
      );
    }
    expect(signer.variables['sealed_table_credentials']).toMatchObject([{ default: true }]);
  });
});

it.each(['administrators', 'signers', 'sealers'])(
  'the %s of a custody key are roles and users, never everybody',
  (name) => {
    const variable = template('custody-key/variables.tf')
      .split(/^variable /m)
      .find((text) => text.startsWith(`"${name}"`));
    const form = new RegExp(/regex\("(\^arn:[^"]+)"/.exec(variable ?? '')?.[1] ?? 'none');
    expect(
      [role('team/parent'), `arn:aws-us-gov:iam::${ACCOUNT}:user/lea@example`].filter((arn) => form.test(arn)),
    ).toHaveLength(2);
    const others = ['*', role('*'), role('parent*'), KEY_VALUES.account, `arn:aws:sts::${ACCOUNT}:assumed-role/a/b`];
    expect({ form, taken: others.filter((arn) => form.test(arn)) }).toEqual({ form, taken: [] });
  },
);

it('every variable and every output says what it is', () => {
  const files = ['main', 'variables', 'outputs'].flatMap((file) =>
    ['custody-key', 'signer', 'example'].map((module) => `${module}/${file}.tf`),
  );
  const blocks = files
    .filter((file) => existsSync(join(ROOT, file)))
    .flatMap((file) => template(file).match(/^(?:variable|output) [\s\S]*?^\}$/gm) ?? []);
  expect(blocks.length).toBeGreaterThan(40);
  expect(blocks.filter((block) => !/^ {2}description += ".{10,}"$/m.test(block))).toEqual([]);
});

it('a custody key is kept, rotated, and never without the check that KMS makes for lock-outs', () => {
  for (const name of ['aws_kms_key.this', 'aws_kms_replica_key.this']) {
    const custodyKey = resource(key, name);
    expect(custodyKey).toMatchObject({
      policy: expression('local.policy'),
      deletion_window_in_days: 30,
      bypass_policy_lockout_safety_check: false,
    });
    const lifecycle = blockIn(custodyKey, 'lifecycle');
    expect(lifecycle['prevent_destroy']).toBe(true);
    expect(blockIn(lifecycle, 'precondition')['condition']).toContain('data.aws_caller_identity.this.account_id');
  }
  expect(resource(key, 'aws_kms_key.this')).toMatchObject({ key_usage: 'ENCRYPT_DECRYPT', enable_key_rotation: true });
  expect(key.locals['template']).toBe(
    expression('var.unsafe_without_attestation ? "key-policy-unattested.json.tftpl" : "key-policy.json.tftpl"'),
  );
  expect(key.variables['unsafe_without_attestation']).toMatchObject([{ default: false }]);
});

describe('the parents', () => {
  it('have enclaves on, IMDSv2 with one hop, no IPv6 metadata, encrypted disks and the parents’ role', () => {
    expect(resource(signer, 'aws_launch_template.parent')).toMatchObject({
      enclave_options: [{ enabled: true }],
      metadata_options: [
        {
          http_endpoint: 'enabled',
          http_tokens: 'required',
          http_put_response_hop_limit: 1,
          http_protocol_ipv6: 'disabled',
        },
      ],
      iam_instance_profile: [{ arn: expression('aws_iam_instance_profile.parent.arn') }],
      vpc_security_group_ids: [expression('aws_security_group.parents.id')],
      block_device_mappings: [{ ebs: [{ encrypted: true }] }],
    });
  });

  it('are replaced when the machine fails, not when the signer is sealed; the balancer sends nobody to a sealed one', () => {
    const group = resource(signer, 'aws_autoscaling_group.parents');
    expect(group).toMatchObject({ health_check_type: 'EC2', suspended_processes: ['AZRebalance'] });
    expect(Object.keys(group)).not.toContain('instance_refresh');
    const target = resource(signer, 'aws_lb_target_group.attested');
    expect(blockIn(target, 'health_check')).toMatchObject({ protocol: 'HTTP', port: '9000', path: '/healthcheck' });
  });

  it('are reached by TCP from end to end: no balancer ends the attested TLS', () => {
    expect(resource(signer, 'aws_lb.this')).toMatchObject({ internal: true, load_balancer_type: 'network' });
    expect(resource(signer, 'aws_lb_listener.attested')).toMatchObject({ port: 9443, protocol: 'TCP' });
    expect(resource(signer, 'aws_lb_target_group.attested')).toMatchObject({ port: 9443, protocol: 'TCP' });
    for (const [name, body] of signer.resources) {
      if (name.startsWith('aws_lb')) expect(Object.keys(body)).not.toContain('certificate_arn');
    }
  });

  it('admit the balancer and Prometheus only, and reach KMS, DynamoDB and what is named', () => {
    const rules = (kind: string, group: string) =>
      [...signer.resources].filter(
        ([name, body]) =>
          name.startsWith(`aws_vpc_security_group_${kind}_rule.`) &&
          body['security_group_id'] === `\${aws_security_group.${group}.id}`,
      );
    expect(
      rules('ingress', 'parents')
        .map(([name]) => name.split('.')[1])
        .sort(),
    ).toEqual(['balancer', 'monitoring']);
    expect(
      rules('egress', 'parents')
        .map(([name]) => name.split('.')[1])
        .sort(),
    ).toEqual(['dynamodb', 'kms', 'other']);
    for (const [, body] of rules('ingress', 'parents')) expect(Object.keys(body)).not.toContain('cidr_ipv4');
    for (const [, body] of rules('egress', 'parents')) expect([body['from_port'], body['to_port']]).toEqual([443, 443]);
    expect(JSON.stringify(signer.resources.get('aws_vpc_security_group_ingress_rule.clients'))).toContain('9443');
    const groups = [...signer.resources].filter(([name]) => name.startsWith('aws_security_group.'));
    for (const [, body] of groups) expect([body['ingress'], body['egress']]).toEqual([undefined, undefined]);
  });

  it('have their own ways to KMS and DynamoDB, for these keys and tables', () => {
    const kms = resource(signer, 'aws_vpc_endpoint.kms');
    expect(kms).toMatchObject({ vpc_endpoint_type: 'Interface', private_dns_enabled: true });
    expect(kms['policy']).toContain('var.custody_key_arns');
    const dynamodb = resource(signer, 'aws_vpc_endpoint.dynamodb');
    expect(dynamodb).toMatchObject({
      vpc_endpoint_type: 'Gateway',
      route_table_ids: expression('var.route_table_ids'),
    });
    expect(dynamodb['policy']).toContain(`/policies/endpoint-${expression('var.phase')}.json.tftpl`);
  });

  it('have the policy of the phase, and with sealed credentials none for the tables', () => {
    expect(signer.locals['parent_policy']).toBe(
      expression(
        `var.sealed_table_credentials ? "keys-only-${expression('var.phase')}" : "signer-${expression('var.phase')}"`,
      ),
    );
    expect(resource(signer, 'aws_iam_role_policy.parent')['policy']).toContain(
      `${expression('local.parent_policy')}.json.tftpl`,
    );
    expect([...signer.resources.keys()].filter((name) => name.startsWith('aws_iam_access_key'))).toEqual([]);
  });
});

describe('as `terraform validate` would', () => {
  it('regular expressions are those of RE2, which repeats at most 1000 times and looks neither ahead nor back', () => {
    const expressions = ['custody-key/variables.tf', 'signer/variables.tf'].flatMap((path) =>
      [...template(path).matchAll(/\bregex\("((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text),
    );
    expect(expressions.length).toBeGreaterThan(5);
    const strange = expressions.filter(
      (text) =>
        /\(\?[=!<]|\\[1-9]/.test(text) ||
        [...text.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].some(([, least, most]) => Number(most || least) > 1000),
    );
    expect(strange).toEqual([]);
  });

  it('what is made, and how often, is known before anything is made', () => {
    // Whether an object is null is known at once; whether a string of a resource is, when the resource is there.
    const compared = template('custody-key/main.tf').matchAll(/var\.(\w+) [!=]= null/g);
    const types = [...compared].map(([, name = '']) => [name, key.variables[name]?.[0]?.['type']]);
    expect(types).toEqual([['replica_of', expression('object({ arn = string })')]]);
  });

  it('everything that is referred to is there, and everything that is declared is used', () => {
    for (const module of [key, signer, example]) {
      const referred = (pattern: RegExp) =>
        new Set(module.expressions.flatMap((text) => [...text.matchAll(pattern)].map(([, name = '']) => name)));
      const variables = referred(/\bvar\.(\w+)/g);
      expect([...variables].sort()).toEqual(Object.keys(module.variables).sort());
      expect([...referred(/\blocal\.(\w+)/g)].sort()).toEqual(Object.keys(module.locals).sort());
      const resources = referred(/(?<![\w.])(aws_\w+\.\w+)/g);
      expect([...resources].filter((name) => !module.resources.has(name))).toEqual([]);
      const data = referred(/\b(data\.\w+\.\w+)/g);
      expect([...data].sort()).toEqual([...module.data.keys()].sort());
    }
  });

  it('modules are given what they need, and give what is asked of them', () => {
    const known: Readonly<Record<string, Module>> = { '../custody-key': key, '../signer': signer };
    const calls = Object.entries(example.modules);
    expect(calls).toHaveLength(4);
    for (const [name, [call = {}]] of calls) {
      const module = known[String(call['source'])];
      if (module === undefined) throw new Error(`${name} has no source here`);
      const given = Object.keys(call).filter((member) => member !== 'source' && member !== 'providers');
      expect(given.filter((member) => module.variables[member] === undefined)).toEqual([]);
      const needed = Object.entries(module.variables).filter(
        ([, [body]]) => body !== undefined && !('default' in body),
      );
      expect(needed.map(([member]) => member).filter((member) => !given.includes(member))).toEqual([]);
      const asked = example.expressions.flatMap((text) => [
        ...text.matchAll(new RegExp(`\\bmodule\\.${name}\\.(\\w+)`, 'g')),
      ]);
      expect(asked.map(([, output = '']) => output).filter((output) => module.outputs[output] === undefined)).toEqual(
        [],
      );
    }
  });

  it('templates are there, and are given every value that they ask for', () => {
    const named = signer.expressions.flatMap((text) => [...text.matchAll(/\$\{path\.module\}\/([\w./-]+\.tftpl)/g)]);
    expect(named.map(([, path = '']) => template(`signer/${path}`).length > 0)).not.toContain(false);
    expect(named.length).toBeGreaterThan(3);
    const policy = String(key.locals['policy']);
    for (const name of Object.keys({ ...KEY_VALUES, images: 0, phase: 0, sealers: 0 })) {
      expect(policy).toMatch(new RegExp(`\\b${name}\\s+= `));
    }
    const granted = JSON.stringify(signer.locals['granted']);
    for (const name of ['key_arns', ...TABLES.map((kind) => `${kind}_table_arn`)]) expect(granted).toContain(name);
    const enclave = String(blockOf(signer.outputs['enclave_yaml'])['value']);
    for (const name of Object.keys(ENCLAVE_VALUES)) expect(enclave).toMatch(new RegExp(`\\b${name}\\s+= `));
  });
});

function resource(module: Module, name: string): Block {
  const found = module.resources.get(name);
  if (found === undefined) throw new Error(`there is no resource ${name}`);
  return found;
}

function blockOf(blocks: readonly Block[] | undefined): Block {
  const [block] = blocks ?? [];
  if (block === undefined) throw new Error('there is no block');
  return block;
}
