// The templates of deploy/terraform, filled in as Terraform fills them in, and values to fill them in with.
// Whoever imports it judges the texts that come out; nothing here judges.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyPolicyRequest } from '../../setup/key-policy.ts';
import { multiRegionArn } from '../config/loading.ts';
import { renderTemplate } from '../support/terraform-template.ts';

export const ROOT = join(import.meta.dirname, '../../deploy/terraform');
export const ACCOUNT = '111122223333';
export const role = (name: string) => `arn:aws:iam::${ACCOUNT}:role/${name}`;
const hex = (digit: string) => digit.repeat(96);

export const template = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
export const rendered = (path: string, values: object): unknown =>
  JSON.parse(renderTemplate(template(path), values as Record<string, unknown>));

export const IMAGES = ['a', 'b', 'c'].map((digit) => ({ PCR0: hex(digit), PCR16: hex('1'), PCR17: hex('2') }));
export const KEY_VALUES = {
  administrators: [role('admin'), role('second-admin')],
  account: `arn:aws:iam::${ACCOUNT}:root`,
  signers: [role('parent')],
  encrypting: [`arn:aws:iam::${ACCOUNT}:user/tables`],
  unsafe_parents_encrypt: false,
  network: `0x${'4b'.repeat(32)}`,
  deployment_id: 'mainnet-eu',
};

export function request(
  images: typeof IMAGES,
  phase: KeyPolicyRequest['phase'],
  sealers: readonly string[],
): KeyPolicyRequest {
  return {
    administrators: KEY_VALUES.administrators,
    signers: KEY_VALUES.signers,
    tableUsers: KEY_VALUES.encrypting,
    images: images.map(({ PCR0, PCR16, PCR17 }) => ({ imageSha384: [PCR0], pcr16: [PCR16], pcr17: [PCR17] })),
    phase,
    deployment: { network: KEY_VALUES.network, id: KEY_VALUES.deployment_id },
    sealers,
  };
}

export const tableArn = (name: string) => `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/strongroom-${name}`;
export const ENCLAVE_VALUES = {
  region: 'eu-central-1',
  deployment_id: 'mainnet-eu',
  state_table_arn: tableArn('state'),
  keys_table_arn: tableArn('keys'),
  slashing_table_arn: tableArn('slashing'),
  kms_regions: ['eu-central-1', 'eu-west-1'],
  unsafe: false,
  custody_key_arn: multiRegionArn(1, 'eu-central-1'),
};
