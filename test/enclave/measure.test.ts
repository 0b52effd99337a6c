// What the start of an enclave says of the configuration that it has measured.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { AWS_NITRO } from '../../common/attestation/contract.ts';
import { measureEnclave } from '../../enclave/measure.ts';
import { createNsmEmulator } from '../../rehearsal/nsm/emulator.ts';
import type { NamedAuthorities } from '../../signer/tee/authorities.ts';
import { makeCertificate } from '../support/certificates.ts';
import { recordingLog } from '../support/recording-log.ts';
import { unixTransport } from '../support/unix-transport.ts';

const CEREMONY = {
  generation: 1,
  kms_threshold: 1,
  kms_keys: [{ arns: ['arn:aws:kms:eu-central-1:111122223333:key/00000000-0000-0000-0000-000000000001'] }],
  root_token_recipients: ['age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p'],
};
const SECRET = 'TEST-static-token-secret';
const dynamodb = { hostname: 'dynamodb.eu-central-1.amazonaws.com', loopback: '127.0.1.1', vsock_port: 8001 };
const CONFIGURATION = {
  anti_slashing: { backend: 'dynamodb', table: 'slashing' },
  tls: { mode: 'ratls' },
  tee: { platform: 'nitro', nitro: { egress: { endpoints: [dynamodb] }, unsafe_parent_writes_tables: true } },
};
const allow = { name: 'p', rules: [{ effect: 'allow', scopes: ['sign'] }] };

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Warning {
  readonly at?: string;
  readonly message: string;
}

async function warningsOf(sections: object, authorities: NamedAuthorities = {}): Promise<readonly Warning[]> {
  const path = join(folder, 'config.yaml');
  writeFileSync(path, stringify({ ...CONFIGURATION, ...sections }));
  const { exchange } = await createNsmEmulator();
  const log = recordingLog();
  const { warnings: ofOptions } = await measureEnclave(
    { ceremony: CEREMONY, configuration: 'baked', authorities },
    {
      nsmDevice: exchange,
      documents: AWS_NITRO,
      parent: unixTransport(folder, 'enclave'),
      hostsPath: join(folder, 'hosts'),
    },
    { log, configurationPath: path },
  );
  expect(JSON.stringify(log.lines)).not.toContain(SECRET);
  const warnings = log.lines.filter(({ level }) => level === 'warn').map(({ message }) => ({ message }));
  const said = ofOptions.filter(({ says }) => says.includes('which the parent reads'));
  return [...warnings, ...said.map(({ at, says }) => ({ at, message: says }))];
}

describe('the start of an enclave', () => {
  it('warns of tokens in its configuration, which the parent reads, and of whom it lets in without any', async () => {
    const message = expect.stringContaining('the parent');
    const tokens = [SECRET, `${SECRET}-2`].map((secret) => ({ secret, policies: ['p'] }));
    const said = [{ at: 'static_auth', message }];
    expect(await warningsOf({ static_auth: { policies: [allow], tokens } })).toEqual(said);
    const anonymous = { policies: ['p'] };
    expect(await warningsOf({ static_auth: { policies: [allow], anonymous } })).toEqual(said);
  });

  it('warns of the password of the slashing database', async () => {
    const endpoint = { hostname: 'db.example.org', loopback: '127.0.1.1', vsock_port: 8001, port: 5432 };
    const tee = { platform: 'nitro', nitro: { egress: { endpoints: [endpoint] }, unsafe_parent_writes_tables: true } };
    const of = (user: string) => ({
      anti_slashing: { backend: 'postgres', url: `postgres://${user}@db.example.org/slashing` },
      tee,
    });
    expect(await warningsOf(of(`signer:${SECRET}`))).toEqual([
      { at: 'anti_slashing.url', message: expect.stringContaining('the parent') },
    ]);
    expect(await warningsOf(of('signer'))).toEqual([]);
  });

  it('warns of authorities for a host that it does not declare, and for KMS and DynamoDB', async () => {
    const pem = readFileSync(makeCertificate(folder, 'authority').cert, 'utf8');
    const endpoints = ['db.example.org', 'kms.eu-central-1.amazonaws.com', 'dynamodb.eu-central-1.amazonaws.com'].map(
      (hostname, at) => ({ hostname, loopback: `127.0.1.${at + 1}`, vsock_port: 8001 + at }),
    );
    const sections = {
      tee: { platform: 'nitro', nitro: { egress: { endpoints }, unsafe_parent_writes_tables: true } },
    };
    const forHosts = (...hosts: readonly string[]) =>
      warningsOf(sections, Object.fromEntries(hosts.map((host) => [host, [pem]])));
    expect(await forHosts('db.example.org')).toEqual([]);
    for (const host of endpoints.slice(1).map(({ hostname }) => hostname))
      expect(await forHosts(host)).toEqual([{ message: expect.stringContaining('plant a master key') }]);
    expect(await forHosts('other.example.org')).toEqual([
      { message: expect.stringContaining('a host that tee.nitro.egress does not declare') },
    ]);
  });

  it('has nothing to warn of without them', async () => {
    expect(await warningsOf({ static_auth: { policies: [allow] } })).toEqual([]);
  });
});
