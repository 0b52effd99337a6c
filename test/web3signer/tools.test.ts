// Tools that start a Web3Signer, with the argument lists that they use (ethereum-package, eth-docker, DAppNode,
// Stereum): each starts the real program, which signs and refuses what is slashable. Folders are moved to a temporary
// one; ports are moved by variables of strongroom, which go over everything.

import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningSigner, runStrongroom, type SignerOptions, startSigner } from '../../rehearsal/signer.ts';
import { PACKAGE_CONFIG } from '../support/consensus-configs.ts';
import { encryptKeystore, publicKeyOf, testSecret, writeKeystore } from '../support/keys.ts';
import { attestation, call, forkInfo, MAINNET_ROOT, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';

const ON_FREE_PORTS = {
  SVC_SERVER__LISTEN_ADDRESS: '127.0.0.1',
  SVC_SERVER__LISTEN_PORT: '0',
  SVC_METRICS__LISTEN_ADDRESS: '127.0.0.1',
  SVC_METRICS__LISTEN_PORT: '0',
  SVC_LOGGING__FORMAT: 'json',
};
const KEY = publicKeyOf(testSecret(1));
const DEVNET_ROOT = rootOf(9);
const BRAIN = 'http://brain.web3signer-hoodi.dappnode';

let folder = '';
let signer: RunningSigner | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-front-'));
});
afterEach(async () => {
  await signer?.stop();
  signer = undefined;
  rmSync(folder, { recursive: true });
});

function made(name: string): string {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
}

async function start(command: readonly string[], options: SignerOptions = {}): Promise<RunningSigner> {
  const started = await startSigner({ folder, command, env: ON_FREE_PORTS, ...options });
  signer = started;
  return started;
}

/** Votes once, and is refused another vote for the same target. */
async function votes({ url }: RunningSigner, root?: string): Promise<void> {
  const vote = (target: number, byte: number) => ({
    ...attestation({ source: 10, target, head: rootOf(byte) }),
    ...(root === undefined ? {} : { fork_info: forkInfo(root) }),
  });
  expect((await signCall(url, KEY, vote(12, 1), { token: null })).status).toBe(200);
  expect((await signCall(url, KEY, vote(12, 2), { token: null })).status).toBe(412);
  expect(JSON.parse((await call(`${url}/api/v1/eth2/publicKeys`, { token: null })).text)).toEqual([KEY]);
}

/** A request that is addressed to a name: fetch writes the Host of its URL, whatever it is told. */
async function askAs(host: string, url: string, body?: unknown): Promise<IncomingMessage> {
  const method = body === undefined ? 'GET' : 'POST';
  const asked = request(url, { method, headers: { host, origin: BRAIN, 'content-type': 'application/json' } });
  asked.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  answer.resume();
  return answer;
}

function warned({ log }: RunningSigner, option: string): unknown {
  return log.find((line) => line['option'] === option && line['level'] === 'warn')?.['msg'];
}

describe('ethereum-package', () => {
  const command = () => [
    '--http-listen-port=9000',
    '--http-host-allowlist=*',
    '--metrics-enabled=true',
    '--metrics-host-allowlist=*',
    '--metrics-host=0.0.0.0',
    '--metrics-port=9001',
    'eth2',
    `--network=${made('network-configs')}/config.yaml`,
    `--keystores-path=${made('keystores/teku-keys')}`,
    `--keystores-passwords-path=${made('keystores/teku-secrets')}`,
    '--slashing-protection-enabled=false',
  ];

  function devnet(): void {
    writeFileSync(join(made('network-configs'), 'config.yaml'), PACKAGE_CONFIG);
    const keystore = JSON.stringify(encryptKeystore(testSecret(1), 'devnet'));
    writeFileSync(join(made('keystores/teku-keys'), `${KEY}.json`), keystore);
    writeFileSync(join(made('keystores/teku-secrets'), `${KEY}.txt`), 'devnet');
  }

  it('signs with the genesis validators root beside its config.yaml, and keeps protecting', async () => {
    devnet();
    writeFileSync(join(folder, 'network-configs/genesis_validators_root.txt'), `${DEVNET_ROOT}\n`);
    const started = await start(command());
    await votes(started, DEVNET_ROOT);
    expect(warned(started, '--slashing-protection-enabled')).toMatch(/never switches slashing protection off/);
    expect(warned(started, 'static_auth')).toMatch(/without a token/);
    expect(started.log.filter((line) => line['option'] === '--slashing-protection-enabled')).toHaveLength(1);
    expect(await (await fetch(started.metricsUrl)).text()).toMatch(/^svc_/m);
  });

  it('says what to add where the root is not there, and takes it from the environment', async () => {
    devnet();
    const refused = await runStrongroom(command(), { env: ON_FREE_PORTS });
    expect(refused).toMatchObject({ code: 78, stderr: expect.stringMatching(/add --genesis-validators-root=0x…/) });
    const env = { ...ON_FREE_PORTS, WEB3SIGNER_GENESIS_VALIDATORS_ROOT: DEVNET_ROOT };
    await votes(await start(command(), { env }), DEVNET_ROOT);
  });
});

describe('eth-docker', () => {
  const command = () => [
    `--key-store-path=${made('keys')}`,
    '--metrics-enabled',
    '--metrics-host-allowlist=*',
    '--http-host-allowlist=*',
    '--logging=info',
    'eth2',
    '--network=mainnet',
    '--enable-key-manager-api=true',
    '--slashing-protection-db-url=jdbc:postgresql://postgres:5432/web3signer',
    '--slashing-protection-db-username=postgres',
    '--slashing-protection-db-password=hunter2',
    '--slashing-protection-pruning-enabled=true',
  ];

  it('signs nothing over an empty record, names the import, and starts once there is a record', async () => {
    writeKeystore(made('keys'), 'one', testSecret(1), 'password');
    const refused = await runStrongroom(command(), { env: ON_FREE_PORTS });
    expect(refused.code).toBe(78);
    expect(refused.stderr).toContain(
      "`WEB3SIGNER_DB='postgresql://postgres:PASSWORD@postgres:5432/web3signer' strongroom slashing import",
    );
    expect(refused.stderr).not.toContain('hunter2');

    const repair = await runStrongroom([...command(), 'watermark-repair', '--slot=352', '--epoch=11']);
    expect(repair).toMatchObject({ code: 0, stdout: expect.stringContaining('a target up to epoch 11') });
    const started = await start(command());
    await votes(started);
    const old = await signCall(started.url, KEY, attestation({ source: 10, target: 11 }), { token: null });
    expect(old.status).toBe(412);
    const listed = await call(`${started.url}/eth/v1/keystores`, { token: null });
    expect(listed.json['data']).toMatchObject([{ validating_pubkey: KEY }]);
    expect(started.output()).not.toContain('hunter2');
  });
});

describe('DAppNode', () => {
  it('starts it by the path of Web3Signer’s program', async () => {
    writeKeystore(made('data/keyfiles'), 'one', testSecret(1), 'password');
    const program = join(made('opt/web3signer/bin'), 'web3signer');
    symlinkSync(join(import.meta.dirname, '../../bin/strongroom'), program);
    const command = [
      `--key-store-path=${folder}/data/keyfiles`,
      '--http-listen-host=0.0.0.0',
      '--http-cors-origins=http://web3signer.web3signer-hoodi.dappnode,http://brain.web3signer-hoodi.dappnode',
      '--http-host-allowlist=web3signer.web3signer-hoodi.dappnode,brain.web3signer-hoodi.dappnode',
      '--metrics-port',
      '9091',
      '--idle-connection-timeout-seconds=900',
      'eth2',
      '--network=mainnet',
      '--slashing-protection-db-url=jdbc:postgresql://postgres.web3signer-hoodi.dappnode:5432/web3signer',
      '--slashing-protection-db-username=postgres',
      '--slashing-protection-db-password=web3signer',
      '--slashing-protection-pruning-epochs-to-keep=500',
      '--key-manager-api-enabled=true',
    ];
    const record = join(folder, 'record.json');
    const metadata = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
    const blocks = [{ slot: '3', signing_root: rootOf(1) }];
    writeFileSync(
      record,
      JSON.stringify({ metadata, data: [{ pubkey: KEY, signed_blocks: blocks, signed_attestations: [] }] }),
    );
    const imported = await runStrongroom(['web3signer', ...command, 'import', `--from=${record}`]);
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('blocks: 1') });

    const started = await start(command, { program: [program] });
    const host = 'web3signer.web3signer-hoodi.dappnode:9000';
    const sign = `${started.url}/api/v1/eth2/sign/${KEY}`;
    expect((await askAs(host, sign, attestation({ target: 12 }))).statusCode).toBe(200);
    expect((await askAs(host, sign, attestation({ target: 12, head: rootOf(2) }))).statusCode).toBe(412);
    expect((await askAs('evil.example:9000', sign, attestation({ target: 13 }))).statusCode).toBe(403);
    const elsewhere = await call(`${started.url}/api/v1/eth2/publicKeys`, { token: null });
    expect(elsewhere).toMatchObject({ status: 403, json: { reason: 'foreign_host' } });
    expect((await fetch(`${started.url}/healthcheck`)).status).toBe(200);
    expect(warned(started, '--metrics-port')).toMatch(/without --metrics-enabled/);
    const page = await askAs(host, `${started.url}/eth/v1/keystores`);
    expect(page.headers['access-control-allow-origin']).toBe(BRAIN);
    await started.stop();
    signer = undefined;

    const file = join(folder, 'exported.json');
    const exported = await runStrongroom([...command, 'export', '--to', file]);
    expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('exported the records of 1 keys') });
  });
});

describe('Stereum', () => {
  it('starts it with a folder for data', async () => {
    writeKeystore(made('keystores'), 'one', testSecret(1), 'password');
    const started = await start([
      `--key-store-path=${folder}/keystores`,
      `--data-path=${made('data')}`,
      '--logging=INFO',
      '--http-cors-origins=*',
      '--http-listen-host=0.0.0.0',
      '--http-host-allowlist=*',
      'eth2',
      '--network=mainnet',
      '--key-manager-api-enabled=true',
      '--slashing-protection-enabled=false',
    ]);
    await votes(started);
    expect(warned(started, '--data-path')).toBeUndefined();
    expect(warned(started, '--slashing-protection-enabled')).toBeDefined();
  });
});

describe('access', () => {
  it('is closed by a variable of strongroom, and then nothing is warned of', async () => {
    writeKeystore(made('keys'), 'one', testSecret(1), 'password');
    const policies = [{ name: 'client', rules: [{ effect: 'allow', scopes: ['sign', 'public_keys'] }] }];
    const tokens = [{ secret: 'env:CLIENT_TOKEN', policies: ['client'] }];
    const env = { ...ON_FREE_PORTS, SVC_STATIC_AUTH: JSON.stringify({ policies, tokens }), CLIENT_TOKEN: TEST_TOKEN };
    const started = await start([`--key-store-path=${folder}/keys`, 'eth2'], { env });
    expect((await signCall(started.url, KEY, attestation(), { token: null })).status).toBe(401);
    expect((await signCall(started.url, KEY, attestation())).status).toBe(200);
    expect(warned(started, 'static_auth')).toBeUndefined();
  });
});

describe('the record', () => {
  it('is never begun in a folder that is not there', async () => {
    const command = ['eth2', `--keystores-path=${made('keys')}`, `--keystores-passwords-path=${folder}/keys`];
    const env = { ...ON_FREE_PORTS, WEB3SIGNER_DATA_PATH: join(folder, 'typo') };
    const refused = await runStrongroom(command, { env });
    expect(refused).toMatchObject({ code: 78, stderr: expect.stringMatching(/cannot be written: .*typo/) });
    expect(refused.stderr).toContain('set by: environment WEB3SIGNER_DATA_PATH');
  });
});
