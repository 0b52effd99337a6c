// deploy/terraform, as far as it goes without AWS and its provider: its tables are those that `setup tables` makes,
// nothing that is kept can be lost, and each resource means what the guide promises.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TABLES } from '../../setup/table-permissions.ts';
import { tableDefinition } from '../../signer/aws/table-definition.ts';
import { keyTableDefinition } from '../../signer/keys/table/definition.ts';
import { type Block, blockIn } from '../support/terraform-module.ts';
import { expression, key, resource, signer } from './terraform-modules.ts';
import { ACCOUNT, KEY_VALUES, ROOT, role, template } from './terraform-templates.ts';

describe('the tables', () => {
  it.each([
    ['state', tableDefinition('x')],
    ['keys', keyTableDefinition('x')],
    ['slashing', tableDefinition('x')],
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
        kind === 'slashing' ? undefined : expression('var.unsafe_parent_writes_tables ? 0 : 1'),
      );
    }
    expect(signer.variables['unsafe_parent_writes_tables']).toMatchObject([{ default: false }]);
  });
});

it.each(['administrators', 'signers', 'table_users', 'sealers'])(
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
    const conditions = (lifecycle['precondition'] as Block[]).map(({ condition }) => String(condition));
    expect(conditions).toEqual([
      expect.stringContaining('data.aws_caller_identity.this.account_id'),
      expect.stringContaining('length(var.table_users) > 0'),
    ]);
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
      expression(`var.unsafe_parent_writes_tables ? "signer-${expression('var.phase')}" : "parent"`),
    );
    expect(resource(signer, 'aws_iam_role_policy.parent')['policy']).toContain(
      `${expression('local.parent_policy')}.json.tftpl`,
    );
    expect([...signer.resources.keys()].filter((name) => name.startsWith('aws_iam_access_key'))).toEqual([]);
  });
});
