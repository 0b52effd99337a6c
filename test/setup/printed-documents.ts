// Configurations and measurements in a folder of the test, and what `strongroom setup` prints of them: policies, and
// whom the judge of the tests lets through them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { stringify } from 'yaml';
import { main } from '../../setup/main.ts';
import type { PolicyDocument } from '../../setup/policy-document.ts';
import { isAllowed } from '../support/policy-judge.ts';

export const ACCOUNT = '111122223333';
export const principal = (name: string, account = ACCOUNT) => `arn:aws:iam::${account}:role/${name}`;
export const ADMIN = principal('custody-admin');
export const PARENT = principal('strongroom-parent');
export const SEALER = principal('sealer');
/** Its credentials are sealed for the enclaves. */
export const TABLE_USER = `arn:aws:iam::${ACCOUNT}:user/strongroom-tables`;
export const HOME = ['--account', ACCOUNT, '--region', 'eu-central-1'];
export const KEY = `arn:aws:kms:eu-central-1:${ACCOUNT}:key/00000000-0000-4000-8000-000000000001`;
const RECIPIENT = 'age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj';
const CEREMONY = { generation: 1, kms_threshold: 1, kms_keys: [{ arns: [KEY] }], root_token_recipients: [RECIPIENT] };
export const hex = (digit: string): string => digit.repeat(96);
export const IMAGE = { PCR0: hex('a'), PCR1: hex('1'), PCR2: hex('2'), PCR16: hex('b'), PCR17: hex('c') };

export let folder = '';

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
  write('unsafe.yaml', {
    signer_state: { ...signer_state, table: `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/state` },
    anti_slashing: { ...anti_slashing, table: `arn:aws:dynamodb:eu-central-1:${ACCOUNT}:table/slashing` },
    tls: { mode: 'ratls' },
    tee: { platform: 'nitro', nitro: { egress: { endpoints: ENDPOINTS }, unsafe_parent_writes_tables: true } },
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

export const ENDPOINTS = [
  { hostname: 'dynamodb.eu-central-1.amazonaws.com', loopback: '127.0.1.1', vsock_port: 8001 },
  { hostname: 'kms.eu-central-1.amazonaws.com', loopback: '127.0.1.2', vsock_port: 8002 },
];

export function write(name: string, content: object): void {
  writeFileSync(join(folder, name), stringify(content));
  if (name.endsWith('.json')) writeFileSync(join(folder, name), JSON.stringify(content));
}

export async function run(...argv: readonly string[]) {
  const said = { stdout: '', stderr: '' };
  const stream = (name: 'stdout' | 'stderr') =>
    ({ write: (text: string) => (said[name] += text) }) as unknown as NodeJS.WritableStream;
  const code = await main(
    argv.map((word) => word.replace(/^@/, `${folder}/`)),
    { env: {}, stdout: stream('stdout'), stderr: stream('stderr') },
  );
  return { code, ...said };
}

export async function printed(...argv: readonly string[]): Promise<PolicyDocument> {
  const { code, stdout, stderr } = await run(...argv);
  expect([code, code === 0 ? '' : stderr]).toEqual([0, '']);
  return JSON.parse(stdout) as PolicyDocument;
}

export const WHO = ['--administrator', ADMIN, '--signer', PARENT];
export const enclaveKey = (...argv: readonly string[]) =>
  printed('kms-policy', '-c', '@enclave.yaml', ...WHO, '--table-user', TABLE_USER, ...argv);
export const PCRS = ['--pcrs', '@pcrs.json'];

export function attested(registers: { readonly PCR0: string; readonly PCR16: string; readonly PCR17: string }) {
  return {
    'kms:RecipientAttestation:ImageSha384': registers.PCR0,
    'kms:RecipientAttestation:PCR0': registers.PCR0,
    'kms:RecipientAttestation:PCR16': registers.PCR16,
    'kms:RecipientAttestation:PCR17': registers.PCR17,
  };
}

const MAINNET = '0x4b363db94e286120d76eb905340fdd4e54bfe9f06bf33ff6cf5ad27f511bfe95';
export const SHARE = {
  'kms:EncryptionContext:service': 'strongroom',
  'kms:EncryptionContext:network': MAINNET,
  'kms:EncryptionContext:deployment': 'mainnet-eu',
};
export const CREDENTIALS = {
  'kms:EncryptionContext:service': 'strongroom',
  'kms:EncryptionContext:purpose': 'table-credentials',
};

export function may(
  document: PolicyDocument,
  caller: string,
  action: string,
  context: Readonly<Record<string, string>> = {},
): boolean {
  return isAllowed([document], { action, resource: '*', principal: caller, context });
}
