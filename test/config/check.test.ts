// `server --check`, as an operator runs it: what it finds beside the configuration file. What it finds of ports and
// stores: check-start.test.ts.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { makeCertificate, makeExpiredCertificate } from '../support/certificates.ts';
import { PACKAGE_CONFIG } from '../support/consensus-configs.ts';
import { testSecret, writeKeystore } from '../support/keys.ts';
import { withoutPlace } from '../support/said-of-place.ts';
import { someOf } from '../support/scale.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-check-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const AUTH = 'static_auth: {policies: [{name: a, rules: [{effect: allow}]}], anonymous: {policies: [a]}}';
const QUIET = `${AUTH}
server: {listen_address: 127.0.0.1, listen_port: 0}
metrics: {listen_address: 127.0.0.1, listen_port: 0}`;

async function check(yaml: string, env: Record<string, string> = {}, args: readonly string[] = []) {
  const file = join(folder, 'strongroom.yaml');
  writeFileSync(file, yaml);
  const run = await runStrongroom(['server', '--check', ...args, '-c', file], { env, cwd: folder });
  return { ...run, text: `${run.stdout}${run.stderr}`.replaceAll(folder, 'FOLDER') };
}

describe('strongroom server --check', () => {
  it('has nothing to say of a good configuration, and makes no database', async () => {
    const { code, stdout, stderr } = await check(`${QUIET}\nanti_slashing: {path: ${folder}/records.sqlite}`);
    expect({ code, stdout, stderr: withoutPlace(stderr) }).toEqual({
      code: 0,
      stdout: 'strongroom: the configuration is valid\n',
      stderr: '',
    });
    expect(readdirSync(folder)).toEqual(['strongroom.yaml']);
  });

  it.skipIf(process.platform !== 'linux')('warns of a database that a restart empties, before it is made', async () => {
    const memory = mkdtempSync('/dev/shm/strongroom-check-');
    try {
      const { code, stderr } = await check(`${QUIET}\nanti_slashing: {path: ${memory}/records.sqlite}`);
      expect(code).toBe(0);
      expect(stderr).toContain('lies on tmpfs, which a restart of the machine empties: move it to a disk');
    } finally {
      rmSync(memory, { recursive: true });
    }
  });

  it('says what a valid configuration warns of, and is content', async () => {
    const anyPort = { SVC_SERVER__LISTEN_PORT: '0', SVC_METRICS__LISTEN_PORT: '0' };
    const { code, stderr } = await check('network: hoodi', anyPort);
    expect(code).toBe(0);
    for (const option of ['static_auth', 'server.listen_address', 'metrics.listen_address', 'anti_slashing.path']) {
      expect(stderr).toContain(`warning: ${option} `);
    }
  });

  it('reads the config.yaml of a devnet, and says what is wrong with it', async () => {
    const yaml = `${QUIET}
network: custom
custom_network: {genesis_validators_root: "0x${'ab'.repeat(32)}", config_file: ${folder}/devnet.yaml}
anti_slashing: {path: ${folder}/records.sqlite}`;
    const missing = await check(yaml);
    expect(missing.code).toBe(78);
    expect(missing.text).toContain(
      'custom_network.config_file names a file that cannot be read: FOLDER/devnet.yaml (ENOENT)',
    );
    writeFileSync(join(folder, 'devnet.yaml'), PACKAGE_CONFIG.replace('GLOAS_FORK_EPOCH: 1', 'GLOAS_FORK_EPOCH: one'));
    expect((await check(yaml)).text).toContain(
      'custom_network.config_file names FOLDER/devnet.yaml line 46: GLOAS_FORK_EPOCH must be',
    );
    writeFileSync(
      join(folder, 'devnet.yaml'),
      PACKAGE_CONFIG.replace('HEZE_FORK_EPOCH: 18446744073709551615', 'HEZE_FORK_EPOCH: 9'),
    );
    const contradicted = await check(yaml.replace('custom\n', '{name: custom, fork_schedule: {gloas: 2}}\n'));
    expect(contradicted.code).toBe(78);
    expect(contradicted.text).toContain('network.fork_schedule.gloas contradicts the known one, 1');
    const good = await check(yaml);
    expect(good.code).toBe(0);
    expect(good.text).toContain('warning: custom_network.config_file plans HEZE at epoch 9');
  });

  it('finds every file and folder that is not there', async () => {
    const { code, text } = await check(`${QUIET}
key_sources: {filesystem: {paths: [${folder}, ${folder}/no-keys]}}
anti_slashing: {path: ${folder}/nowhere/records.sqlite}
tls: {mode: file, listen_port: 0, file: {cert_path: ${folder}/cert.pem, key_path: ${folder}/key.pem}}`);
    expect(code).toBe(78);
    expect(text).toContain('has 4 violations');
    expect(text).toContain(
      'key_sources.filesystem.paths[1] names a directory that cannot be read: FOLDER/no-keys (ENOENT)',
    );
    expect(text).toContain('anti_slashing.path lies in a folder that cannot be written: FOLDER/nowhere (ENOENT)');
    expect(text).toContain('tls.file.cert_path FOLDER/cert.pem cannot be read (ENOENT)');
    expect(text).toContain('tls.file.key_path FOLDER/key.pem cannot be read (ENOENT)');
  });

  it('finds at once everything that is wrong with the files of TLS', async () => {
    for (const name of ['cert.pem', 'ca.pem']) writeFileSync(join(folder, name), 'nothing');
    const clients = '[{name: a, subject: CN=a, policies: [x]}]';
    const { code, text } = await check(`server: {listen_port: 0}
metrics: {listen_port: 0}
anti_slashing: {path: ${folder}/db}
static_auth: {policies: [{name: x, rules: [{effect: allow}]}]}
tls: {mode: file, listen_port: 0, file: {cert_path: ${folder}/cert.pem, key_path: ${folder}/key.pem}, client_ca: ${folder}/ca.pem, known_clients: ${clients}}`);
    expect(code).toBe(78);
    expect(text).toContain('has 3 violations');
    expect(text).toContain('tls.file.cert_path FOLDER/cert.pem does not hold a PEM certificate');
    expect(text).toContain('tls.file.key_path FOLDER/key.pem cannot be read (ENOENT)');
    expect(text).toContain('tls.client_ca FOLDER/ca.pem does not hold a PEM certificate');
  });

  it('warns of a folder from which no key is loaded', async () => {
    mkdirSync(join(folder, 'keys'));
    const bare = `${QUIET}\nanti_slashing: {path: ${folder}/db}\nkey_sources: {filesystem: {keystores: {path: ${folder}/keys, passwords_path: ${folder}}}}`;
    const none = await check(bare);
    expect([none.code, none.text]).toEqual([
      0,
      expect.stringMatching(/keystores\.path names a folder without a keystore/),
    ]);
    writeFileSync(join(folder, 'keys', 'keystore-m_12381.json'), '{}');
    expect((await check(bare)).text).not.toContain('names a folder without a keystore');
    const { code, text } = await check(
      `${QUIET}\nanti_slashing: {path: ${folder}/db}\nkey_sources: {filesystem: {paths: [${folder}/keys]}}`,
    );
    expect(code).toBe(0);
    expect(text).toMatch(
      /paths names a folder without a descriptor .*FOLDER\/keys\. It has 1 \.json files: .*keystores\.path/,
    );
  });

  it('warns of keys that the start could not load, by file and reason', async () => {
    const keys = join(folder, 'some-keys');
    const bare = join(folder, 'bare');
    for (const made of [keys, bare]) mkdirSync(made);
    const describe = (name: string, lines: string): void => writeFileSync(join(keys, `${name}.yaml`), lines);
    describe('a', 'type: hashicorp\n');
    describe('b', 'type: file-keystore\nkeystoreFile: none.json\nkeystorePasswordFile: none.password\n');
    describe('c', `type: file-raw\nprivateKey: "0x0${'12'.repeat(31)}1"\n`);
    for (const name of ['1', '2', '3', '4']) writeFileSync(join(bare, `${name}.json`), '{}');
    const { code, text } = await check(
      `${QUIET}\nanti_slashing: {path: ${folder}/db}\n` +
        `key_sources: {filesystem: {paths: [${keys}], keystores: {path: ${bare}, passwords_path: ${bare}}}}`,
    );
    expect(code).toBe(0);
    expect(text).toContain(
      'key_sources.filesystem.paths has 2 keys that cannot be loaded: the signer starts without, and /healthcheck is ' +
        'DOWN (FOLDER/some-keys/a.yaml, document 1: unsupported type hashicorp; FOLDER/some-keys/b.yaml: keystoreFile ' +
        'FOLDER/some-keys/none.json: does not exist)',
    );
    expect(text).toMatch(/filesystem\.keystores has 4 keys .*\(keystoreFile FOLDER\/bare\/1\.json: .*; and 1 more\)/);
  });

  it('with --decrypt opens each keystore, and says whose password is wrong; without it does not try', async () => {
    const keys = join(folder, 'keystores');
    mkdirSync(keys);
    writeKeystore(keys, 'good', testSecret(1), 'right');
    writeKeystore(keys, 'bad', testSecret(2), 'right');
    writeFileSync(join(keys, 'bad.password'), 'wrong');
    const yaml = `${QUIET}\nanti_slashing: {path: ${folder}/db}\nkey_sources: {filesystem: {paths: [${keys}]}}`;
    const unopened = await check(yaml);
    expect(unopened.code).toBe(0);
    expect(unopened.text).not.toContain('cannot be loaded');
    const { code, text } = await check(yaml, {}, ['--decrypt']);
    expect(code).toBe(78);
    expect(text).toMatch(/strongroom: 1 key cannot be used: a signer starts without, and is DOWN\n$/);
    expect(text).not.toContain('the configuration is valid');
    expect(text).toContain(
      'key_sources.filesystem.paths has a key that cannot be loaded: the signer starts without, and /healthcheck is DOWN ' +
        '(FOLDER/keystores/bad.yaml: keystoreFile FOLDER/keystores/bad.json: the password does not open the keystore)',
    );
  });

  it('says what is set and does nothing', async () => {
    const { code, text } = await check(
      `${QUIET}\nanti_slashing: {path: ${folder}/db, pool_size: 4}\ntls: {listen_port: 9443}`,
    );
    expect(code).toBe(0);
    expect(text).toContain('anti_slashing.pool_size does nothing: it is for the backend postgres.');
    expect(text).toContain('tls.listen_port does nothing: tls.mode is disabled.');
  });

  it('an unset variable is to be exported, and --offline alone is nothing', async () => {
    const yaml =
      'static_auth: {policies: [{name: a, rules: [{effect: allow}]}], tokens: [{secret: "env:NOT_SET", policies: [a]}]}';
    const { code, text } = await check(yaml);
    expect(code).toBe(78);
    expect(text).toMatch(/NOT_SET, which is unset\n.*\n +to do: +export NOT_SET/);
    for (const flag of someOf(['--offline', '--decrypt'], 1)) {
      expect((await runStrongroom(['server', flag])).stderr).toContain(`${flag} is given without --check`);
    }
  });

  it('finds the roots of the database that are not there', async () => {
    const url = `postgres://a@b/c?sslrootcert=${folder}/roots.pem`;
    const { code, text } = await check(`${QUIET}\nanti_slashing: {backend: postgres, url: "${url}"}`);
    expect(code).toBe(78);
    expect(text).toContain(
      'anti_slashing.url names a file of root certificates that cannot be read: FOLDER/roots.pem (ENOENT)',
    );
  });

  it('finds a key that is not the certificate’s', async () => {
    const [{ cert }, { key }] = [makeCertificate(folder, 'one'), makeCertificate(folder, 'other')];
    const { code, text } = await check(
      `${QUIET}\nanti_slashing: {path: ${folder}/db}\ntls: {mode: file, listen_port: 0, file: {cert_path: ${cert}, key_path: ${key}}}`,
    );
    expect(code).toBe(78);
    expect(text).toContain('tls.file.key_path the key in FOLDER/other.key does not belong to the certificate');
  });

  it('finds files of client certificates that cannot be used', async () => {
    const { cert, key } = makeCertificate(folder, 'server');
    writeFileSync(join(folder, 'ca.pem'), 'nothing');
    const clients = `[{name: a, subject: CN=a, policies: [x]}, {name: b, file: ${folder}/clients.txt, policies: [x]}]`;
    const { code, text } = await check(`server: {listen_port: 0}
metrics: {listen_port: 0}
anti_slashing: {path: ${folder}/db}
static_auth: {policies: [{name: x, rules: [{effect: allow}]}]}
tls: {mode: file, listen_port: 0, file: {cert_path: ${cert}, key_path: ${key}}, client_ca: ${folder}/ca.pem, known_clients: ${clients}}`);
    expect(code).toBe(78);
    expect(text).toContain('tls.client_ca FOLDER/ca.pem does not hold a PEM certificate');
    expect(text).toContain('tls.known_clients FOLDER/clients.txt cannot be read (ENOENT)');
  });

  it('warns of a certificate that has expired', async () => {
    const { cert, key, notAfter } = await makeExpiredCertificate(folder, 'old');
    const { code, text } = await check(
      `${QUIET}\nanti_slashing: {path: ${folder}/db}\ntls: {mode: file, listen_port: 0, file: {cert_path: ${cert}, key_path: ${key}}}`,
    );
    expect(code).toBe(0);
    expect(text).toContain(`warning: tls.file.cert_path holds a certificate that expired at ${notAfter}`);
  });

  it('takes a folder that is a file for what it is', async () => {
    writeFileSync(join(folder, 'file'), '');
    const { code, text } = await check(`${QUIET}\nanti_slashing: {path: ${folder}/file/db}`);
    expect(code).toBe(78);
    expect(text).toContain('(ENOTDIR)');
  });

  it('does not look for the files of an enclave here', async () => {
    mkdirSync(join(folder, 'x'));
    const { code } =
      await check(`tee: {platform: nitro, nitro: {egress: {endpoints: [{hostname: dynamodb.eu-central-1.amazonaws.com, loopback: 127.0.1.1, vsock_port: 8001}]}, unsafe_parent_writes_tables: true}}
tls: {mode: ratls}
anti_slashing: {backend: dynamodb, table: records}
${AUTH}`);
    expect(code).toBe(0);
  });

  it('counts the variables of Kubernetes in one line', async () => {
    const env = { SVC_SERVICE_HOST: '10.0.0.1', SVC_SERVICE_PORT: '9000', SVC_PORT: 'tcp://10.0.0.1:9000' };
    const { code, stderr } = await check(`${QUIET}\nanti_slashing: {path: ${folder}/db}`, env);
    expect(code).toBe(0);
    expect(stderr).toBe(
      'note: variables that Kubernetes injects for Services are ignored: SVC_SERVICE_HOST and 2 more\n',
    );
  });
});
