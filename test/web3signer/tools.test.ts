// Tools that start a Web3Signer, with the argument lists that they use (ethereum-package, eth-docker, DAppNode,
// Stereum): each starts the real program, which signs and refuses what is slashable. Folders are moved to a temporary
// one; ports are moved by variables of strongroom, which go over everything.

import { mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RunningSigner, runStrongroom, type SignerOptions, startSigner } from '../../rehearsal/signer.ts';
import { encryptKeystore, testSecret, writeKeystore } from '../support/keys.ts';
import { expectNoList } from '../support/no-list.ts';
import { attestation, call, MAINNET_ROOT, rootOf, signCall, TEST_TOKEN } from '../support/requests.ts';
import {
  askAs,
  DAPPNODE_HOST,
  DAPPNODE_PAGE,
  DEVNET_ROOT,
  dappnode,
  ethDocker,
  ethereumPackage,
  expectVotes,
  made as madeIn,
  ON_FREE_PORTS,
  TOOL_KEY,
  writeDevnet,
  writeToolKeystore,
} from '../support/web3signer-tools.ts';

const KEY = TOOL_KEY;

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

const made = (name: string): string => madeIn(folder, name);

async function start(command: readonly string[], options: SignerOptions = {}): Promise<RunningSigner> {
  const started = await startSigner({ folder, command, env: ON_FREE_PORTS, ...options });
  signer = started;
  return started;
}

/** As the refusal of a start says, with the present of these tests. */
async function waive(command: readonly string[], database: string): Promise<void> {
  const printed = await runStrongroom([...command, '--print-config']);
  const config = join(folder, 'strongroom.yaml');
  writeFileSync(config, printed.stdout);
  const present = ['--slot=352', '--epoch=11'];
  const waived = await runStrongroom(['slashing', 'jump', ...present, `--waive-web3signer=${database}`, '-c', config]);
  expect(waived).toMatchObject({ code: 0, stdout: expect.stringContaining('a target up to epoch 11') });
}

function warned({ log }: RunningSigner, option: string): unknown {
  return log.find((line) => line['option'] === option && line['level'] === 'warn')?.['msg'];
}

describe('ethereum-package', () => {
  const command = () => ethereumPackage(folder);

  it('signs with the genesis validators root beside its config.yaml, and keeps protecting', async () => {
    writeDevnet(folder, true);
    const started = await start(command());
    await expectVotes(started, DEVNET_ROOT);
    expect(warned(started, '--slashing-protection-enabled')).toMatch(/never switches slashing protection off/);
    expect(warned(started, 'static_auth')).toMatch(/without a token/);
    expect(started.log.filter((line) => line['option'] === '--slashing-protection-enabled')).toHaveLength(1);
    expect(await (await fetch(started.metricsUrl)).text()).toMatch(/^svc_/m);
  });

  it('says what to add where the root is not there, and takes it from the environment', async () => {
    writeDevnet(folder, false);
    const refused = await runStrongroom(command(), { env: ON_FREE_PORTS });
    expect(refused).toMatchObject({ code: 78, stderr: expect.stringMatching(/add --genesis-validators-root=0x…/) });
    const env = { ...ON_FREE_PORTS, WEB3SIGNER_GENESIS_VALIDATORS_ROOT: DEVNET_ROOT };
    await expectVotes(await start(command(), { env }), DEVNET_ROOT);
  });
});

describe('eth-docker', () => {
  const command = () => ethDocker(folder);

  it('signs nothing without the record of its database, names the import, and starts once that is waived', async () => {
    writeToolKeystore(made('keys'));
    const refused = await runStrongroom(command(), { env: ON_FREE_PORTS });
    expect(refused.code).toBe(78);
    expect(refused.stderr).toContain(
      "`WEB3SIGNER_DB='postgresql://postgres:PASSWORD@postgres:5432/web3signer' strongroom slashing import",
    );
    expect(refused.stderr).not.toContain('hunter2');

    const repair = await runStrongroom([...command(), 'watermark-repair', '--slot=352', '--epoch=11']);
    expect(repair).toMatchObject({ code: 0, stdout: expect.stringContaining('a target up to epoch 11') });
    expect(await runStrongroom(command(), { env: ON_FREE_PORTS })).toMatchObject({ code: 78 });
    const lower = await runStrongroom([...command(), 'watermark-repair', '--slot=2', '--epoch=1']);
    expect(lower).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('blocks up to slot 352, votes with a target up to epoch 11'),
    });
    for (const beyond of [
      ['--slot=2', '--epoch=99999999999999'],
      ['--slot=99999999999999', '--epoch=1'],
    ]) {
      const refused = await runStrongroom([...command(), 'watermark-repair', ...beyond]);
      expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('is still to come') });
    }
    await waive(command(), 'postgres:5432/web3signer');
    const started = await start(command());
    await expectVotes(started);
    const old = await signCall(started.url, KEY, attestation({ source: 10, target: 11 }), { token: null });
    expect(old.status).toBe(412);
    const listed = await call(`${started.url}/eth/v1/keystores`, { token: null });
    expect(listed.json['data']).toMatchObject([{ validating_pubkey: KEY }]);
    expect(started.output()).not.toContain('hunter2');
  });
});

describe('DAppNode', () => {
  it('starts it by the path of Web3Signer’s program', async () => {
    writeToolKeystore(made('data/keyfiles'));
    const program = join(made('opt/web3signer/bin'), 'web3signer');
    symlinkSync(join(import.meta.dirname, '../../bin/strongroom'), program);
    const command = dappnode(folder);
    const record = join(folder, 'record.json');
    const metadata = { interchange_format_version: '5', genesis_validators_root: MAINNET_ROOT };
    const blocks = [{ slot: '3', signing_root: rootOf(1) }];
    writeFileSync(
      record,
      JSON.stringify({ metadata, data: [{ pubkey: KEY, signed_blocks: blocks, signed_attestations: [] }] }),
    );
    const imported = await runStrongroom(['web3signer', ...command, 'import', `--from=${record}`]);
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('blocks: 1') });
    await waive(command, 'postgres.web3signer-hoodi.dappnode:5432/web3signer');

    const started = await start(command, { program: [program] });
    const host = DAPPNODE_HOST;
    const sign = `${started.url}/api/v1/eth2/sign/${KEY}`;
    expect((await askAs(host, sign, attestation({ target: 12 }))).statusCode).toBe(200);
    expect((await askAs(host, sign, attestation({ target: 12, head: rootOf(2) }))).statusCode).toBe(412);
    expect((await askAs('evil.example:9000', sign, attestation({ target: 13 }))).statusCode).toBe(403);
    await expectNoList(call(`${started.url}/api/v1/eth2/publicKeys`, { token: null }));
    const elsewhere = await call(`${started.url}/reload`, { token: null });
    expect(elsewhere).toMatchObject({ status: 403, json: { reason: 'foreign_host' } });
    expect((await fetch(`${started.url}/healthcheck`)).status).toBe(200);
    expect(warned(started, '--metrics-port')).toMatch(/without --metrics-enabled/);
    const page = await askAs(host, `${started.url}/eth/v1/keystores`);
    expect(page.headers['access-control-allow-origin']).toBe(DAPPNODE_PAGE);
    await started.stop();
    signer = undefined;

    const file = join(folder, 'exported.json');
    const exported = await runStrongroom([...command, 'export', '--to', file]);
    expect(exported).toMatchObject({ code: 0, stderr: expect.stringContaining('exported the records of 1 key') });
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
    await expectVotes(started);
    expect(warned(started, '--data-path')).toBeUndefined();
    expect(warned(started, '--slashing-protection-enabled')).toBeDefined();
  });
});

describe('access', () => {
  it('looks at no token that a tool sends, through all that eth-docker and DAppNode do with keys, and says so once', async () => {
    const started = await start([
      `--key-store-path=${made('keys')}`,
      ...['eth2', '--network=mainnet', '--key-manager-api-enabled=true', '--slashing-protection-enabled=false'],
    ]);
    const keystores = [JSON.stringify(encryptKeystore(testSecret(1), 'password'))];
    for (const token of ['NIL', `api-token-0x${'ab'.repeat(32)}`]) {
      const path = `${started.url}/eth/v1/keystores`;
      const imported = await call(path, { token, body: { keystores, passwords: ['password'] } });
      expect(imported.json['data']).toEqual([{ status: 'imported' }]);
      expect((await call(path, { token })).json['data']).toMatchObject([{ validating_pubkey: KEY }]);
      expect((await signCall(started.url, KEY, attestation({ target: 12 }), { token })).status).toBe(200);
      expect((await call(`${started.url}/reload`, { token, method: 'POST' })).status).toBe(202);
      const deleted = await call(path, { token, method: 'DELETE', body: { pubkeys: [KEY] } });
      expect(deleted.json['data']).toEqual([{ status: 'deleted' }]);
    }
    const said = started.log.filter(({ msg }) => /tokens are not looked at/.test(String(msg)));
    expect(said).toMatchObject([{ level: 'warn' }]);
    expect(started.output()).not.toContain('api-token-0x');
  });

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

describe('a folder of keys that is not there', () => {
  it('is no end of the start, as with Web3Signer: the signer is DOWN until a reload finds it', async () => {
    const keys = join(folder, 'keys');
    const started = await start([`--key-store-path=${keys}`, `--data-path=${made('data')}`, 'eth2']);
    const health = async () => (await fetch(`${started.url}/healthcheck`)).status;
    const list = () => call(`${started.url}/api/v1/eth2/publicKeys`, { token: null });
    const reload = async () => {
      await call(`${started.url}/reload`, { token: null, method: 'POST' });
      const status = async () => (await call(`${started.url}/reload`, { token: null })).json['status'];
      await expect.poll(status).not.toBe('running');
      return status();
    };
    expect([await health(), (await list()).text]).toEqual([503, '[]']);
    expect(await started.logged('a key was not loaded', { file: keys })).toMatchObject({ level: 'error' });
    expect([await reload(), await health()]).toEqual(['failed', 503]);
    writeKeystore(made('keys'), 'one', testSecret(1), 'password');
    expect([await reload(), await health(), (await list()).text]).toEqual(['completed', 200, JSON.stringify([KEY])]);
    rmSync(keys, { recursive: true });
    expect([await reload(), (await list()).text]).toEqual(['failed', JSON.stringify([KEY])]);
  });

  it('ends a start of the server', async () => {
    const config = { key_sources: { filesystem: { paths: [join(folder, 'nothing')] } } };
    await expect(startSigner({ folder, config })).rejects.toThrow(/paths.*nothing cannot be read \(ENOENT\)/);
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

  describe('that lies where other options put it', () => {
    const network = ['eth2', '--network=mainnet'];
    const data = () => `--data-path=${made('data')}`;
    const keys = () => `--key-store-path=${made('keys')}`;
    const vote = (head: string) => attestation({ target: 12, head });
    const ask = async ({ url }: RunningSigner, head: string) =>
      (await signCall(url, KEY, vote(head), { token: null })).status;

    it('is no reason to begin a new one: neither a start nor a command does', async () => {
      writeToolKeystore(made('keys'));
      const started = await start([keys(), ...network]);
      expect(warned(started, '--data-path')).toMatch(/is not there yet \(if .* name that one with/);
      expect(await ask(started, rootOf(1))).toBe(200);
      await started.stop();
      const record = join(folder, 'keys/slashing_protection.sqlite');
      const commands = [['--print-config'], ['export', `--to=${folder}/x`], ['import', `--from=${folder}/x`], []];
      for (const command of commands) {
        const refused = await runStrongroom([keys(), data(), ...network, ...command], { env: ON_FREE_PORTS });
        expect(refused).toMatchObject({ code: 78, stdout: '' });
        expect(refused.stderr).toContain(`is ${record}; these options would begin another, ${folder}/data/`);
        expect(refused.stderr).toContain(`move it there with all files ${record}-*`);
        expect(readdirSync(join(folder, 'data'))).toEqual([]);
      }
      for (const name of readdirSync(join(folder, 'keys')).filter((name) => name.startsWith('slashing_protection.')))
        renameSync(join(folder, 'keys', name), join(folder, 'data', name));
      const moved = await start([keys(), data(), ...network]);
      expect(await ask(moved, rootOf(2))).toBe(412);
    });

    it('in the folder of the start counts, where a start without options begins it', async () => {
      writeFileSync(join(folder, 'slashing_protection.sqlite'), '');
      const options = { env: ON_FREE_PORTS, cwd: folder };
      const refused = await runStrongroom([keys(), ...network], options);
      expect(refused).toMatchObject({ code: 78, stderr: expect.stringContaining(`another, ${folder}/keys/`) });
      expect(await runStrongroom([...network, '--print-config'], options)).toMatchObject({ code: 0 });
    });
  });
});
