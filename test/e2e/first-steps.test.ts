// What a person runs first: a try that leaves nothing behind, a configuration that starts as it is written, and a
// server that says that it has none.

import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { runStrongroom, startSigner } from '../../rehearsal/signer.ts';
import { pathLine } from '../../service/first/path-line.ts';
import { encryptKeystore, publicKeyOf, testSecret } from '../support/keys.ts';
import { attestation, signCall } from '../support/requests.ts';

const BIN = realpathSync(join(import.meta.dirname, '../../bin'));
const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'strongroom-first-'));
const asRoot = process.getuid?.() === 0;

interface Written {
  readonly network: string;
  readonly static_auth: { readonly tokens: readonly { readonly name: string; readonly secret: string }[] };
}

describe('strongroom try', () => {
  it('does not speak of PATH where the shell finds this program, by a link or not', () => {
    const [links, others] = [emptyFolder(), emptyFolder()];
    symlinkSync(join(BIN, 'strongroom'), join(links, 'strongroom'));
    writeFileSync(join(others, 'strongroom'), 'another program');
    const entry = join(BIN, 'strongroom.ts');
    expect(pathLine(entry, `/nonexistent::${links}:${others}`)).toBeUndefined();
    expect(pathLine(entry, BIN)).toBeUndefined();
    expect(pathLine(entry, `${others}:${links}`)).toBe(`export PATH="${BIN}:$PATH"`);
    expect(pathLine(entry, undefined)).toBe(`export PATH="${BIN}:$PATH"`);
    expect(pathLine(join(others, 'app/main.js'), undefined)).toBeUndefined();
  });

  it('signs, refuses what would be slashed, and leaves nothing in the present folder nor in the temporary one', async () => {
    const [cwd, temporary] = [emptyFolder(), emptyFolder()];
    const { code, stdout, stderr } = await runStrongroom(['try'], { cwd, env: { TMPDIR: temporary } });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/^Sign .*\n +200 {2}the signature 0x[0-9a-f]{8}…[0-9a-f]{6}\n/m);
    expect(stdout).toMatch(/^Refuse .*\n +412 {2}\{"code":412,"reason":"double_vote"/m);
    expect(stdout).toMatch(/^Repeat .*\n +200 {2}the same signature\n/m);
    expect(stdout).toMatch(/^Deny .*\n +401 /m);
    expect(stdout).toContain(`\nNext\n  export PATH="${BIN}:$PATH"\n  strongroom init `);
    expect([readdirSync(cwd), readdirSync(temporary)]).toEqual([[], []]);
  });

  it('colours the status of an answer alone', async () => {
    const { stdout } = await runStrongroom(['try'], {
      env: {
        FORCE_COLOR: '1',
        NODE_USE_ENV_PROXY: '1',
        HTTP_PROXY: 'http://127.0.0.1:1',
        http_proxy: 'http://127.0.0.1:1',
      },
    });
    const colored = stdout.split('\u001B[').filter((part) => /^3\dm/.test(part));
    expect(colored).toEqual(['32m200', '31m412', '32m200', '31m401']);
  });

  it('without a folder that can be written it says which variable names one', async () => {
    const { code, stderr } = await runStrongroom(['try'], { env: { TMPDIR: '/nonexistent' } });
    expect(code).toBe(1);
    expect(stderr).toBe(
      'strongroom try: no temporary folder can be made in /nonexistent (ENOENT)\n' +
        '  name one that can be written: TMPDIR=FOLDER strongroom try\n',
    );
  });
});

describe('strongroom init', () => {
  it('what it writes is for its owner alone, passes the check, and has two tokens that differ', async () => {
    const cwd = emptyFolder();
    const { code, stdout } = await runStrongroom(['init', '--network', 'hoodi', '--client', 'nimbus'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toMatch(/strongroom server -c strongroom\/strongroom\.yaml/);
    expect(stdout).toContain('--web3-signer-url="http://any:$(cat strongroom/tokens/validator-client)@127.0.0.1:9000"');
    const modes = ['', 'tokens', 'keys', 'passwords', 'records', 'tokens/operator', 'tokens/validator-client'].map(
      (name) => (statSync(join(cwd, 'strongroom', name)).mode & 0o777).toString(8),
    );
    expect(modes).toEqual(['700', '700', '700', '700', '700', '600', '600']);
    const file = join(cwd, 'strongroom/strongroom.yaml');
    const offline = await runStrongroom(['server', '--check', '--offline', '-c', file], { cwd: emptyFolder() });
    expect([offline.code, offline.stdout]).toEqual([0, 'strongroom: the configuration is valid\n']);
    const tokens = readdirSync(join(cwd, 'strongroom/tokens')).map((name) =>
      readFileSync(join(cwd, 'strongroom/tokens', name), 'utf8'),
    );
    expect(tokens).toEqual([expect.stringMatching(TOKEN), expect.stringMatching(TOKEN)]);
    expect(tokens[0]).not.toBe(tokens[1]);
    for (const token of tokens) expect(stdout + readFileSync(file, 'utf8')).not.toContain(token.trim());
  });

  it('a signer starts with it: the client signs and may not look, the operator looks and may not sign', async () => {
    const cwd = emptyFolder();
    const [secret, password] = [testSecret(7), 'a password'];
    const key = { publicKey: publicKeyOf(secret) };
    expect(await runStrongroom(['init', 'here'], { cwd })).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /Next\n(?: {2}export PATH.*\n)? {2}New keys, or keys that have signed elsewhere\? For those, .*: strongroom migrate/,
      ),
    });
    writeFileSync(join(cwd, 'here/keys/one.json'), JSON.stringify(encryptKeystore(secret, password)));
    writeFileSync(join(cwd, 'here/passwords/one.txt'), password);
    const config = parse(readFileSync(join(cwd, 'here/strongroom.yaml'), 'utf8')) as Written & Record<string, unknown>;
    const token = (name: string): string => readFileSync(join(cwd, 'here/tokens', name), 'utf8').trim();
    const signer = await startSigner({ config: { ...config, ...FOR_TESTS } });
    const sign = (with_: string) => signCall(signer.url, key.publicKey, attestation(), { token: token(with_) });
    const status = (with_: string) =>
      fetch(`${signer.url}/api/v1/chamber/status`, { headers: { authorization: `Bearer ${token(with_)}` } });
    const answers = [await sign('validator-client'), await sign('operator')].map((answer) => answer.status);
    const looks = [await status('operator'), await status('validator-client')].map((answer) => answer.status);
    await signer.stop();
    expect(signer.log.filter(({ level }) => level === 'warn').at(-1)).toMatchObject({
      keys: 1,
      msg: expect.stringMatching(
        /^the slashing store has no readable record of 1 key\..*strongroom slashing import FILE -c \/\S+\.yaml$/,
      ),
    });
    const again = await startSigner({ config: { ...config, ...FOR_TESTS } });
    await signCall(again.url, key.publicKey, attestation(), { token: token('validator-client') });
    await again.stop();
    expect(again.log.map(({ msg }) => msg)).not.toContainEqual(expect.stringContaining('no readable record'));
    expect([answers, looks]).toEqual([
      [200, 403],
      [200, 403],
    ]);
  });

  it('the operator needs no flags, and a profile that is there stays', async () => {
    const cwd = emptyFolder();
    const env = { XDG_CONFIG_HOME: join(cwd, 'config') };
    const first = await runStrongroom(['init'], { cwd, env });
    expect(first.stdout).toMatch(/\n {2}config\/strongroom\/operator\.yaml +the operator's profile/);
    expect(first.stdout).toMatch(/\n {2}strongroom operator status\n/);
    const written = readFileSync(join(cwd, 'config/strongroom/operator.yaml'), 'utf8');
    const profile = parse(written) as object;
    expect(profile).toEqual({
      profiles: {
        default: {
          signer_url: 'http://127.0.0.1:9000',
          allow_plaintext_signer: true,
          token: `@${join(cwd, 'strongroom/tokens/operator')}`,
        },
      },
    });
    const again = await runStrongroom(['init', 'other'], { cwd, env });
    expect([again.code, again.stdout]).toEqual([0, expect.stringMatching(/status --signer-url .*other\/tokens/)]);
    expect(readFileSync(join(cwd, 'config/strongroom/operator.yaml'), 'utf8')).toBe(written);
  });

  it('a client that it does not know ends it before anything is written', async () => {
    const cwd = emptyFolder();
    const { code, stderr } = await runStrongroom(['init', '--client', 'teku', '--client', 'besu'], { cwd });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/--client is one of lighthouse, .*, not besu/)]);
    expect(readdirSync(cwd)).toEqual([]);
  });

  it('overwrites nothing', async () => {
    const cwd = emptyFolder();
    await runStrongroom(['init'], { cwd });
    const file = join(cwd, 'strongroom/strongroom.yaml');
    writeFileSync(file, '# mine\n');
    const again = await runStrongroom(['init'], { cwd });
    expect([again.code, readFileSync(file, 'utf8')]).toEqual([1, '# mine\n']);
  });

  it.skipIf(asRoot && process.platform !== 'linux')('a folder that cannot be made leaves nothing behind', async () => {
    const cwd = emptyFolder();
    // /proc makes no folders, whoever asks.
    const refused = await runStrongroom(['init', '/proc/strongroom'], { cwd });
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining('/proc/strongroom cannot be written (ENOENT)'),
    ]);
    writeFileSync(join(cwd, 'file'), '');
    chmodSync(join(cwd, 'file'), 0o600);
    const beneath = await runStrongroom(['init', 'file/a'], { cwd });
    expect([beneath.code, beneath.stderr]).toEqual([1, expect.stringContaining('cannot be written (ENOTDIR)')]);
    expect(readdirSync(cwd)).toEqual(['file']);
  });
});

const TOKEN = /^sr_client_[A-Za-z0-9_-]{43}\n$/;
/** The ports of the file are one machine's, and tests run beside each other; the log is read line by line. */
const FOR_TESTS = {
  logging: { level: 'info', format: 'json' },
  server: { listen_address: '127.0.0.1', listen_port: 0 },
  metrics: { listen_address: '127.0.0.1', listen_port: 0 },
};

describe('strongroom server without a configuration', () => {
  it.each([[['server']], [['server', '--check']]])('%j says so, opens nothing and writes nothing', async (argv) => {
    const cwd = emptyFolder();
    const { code, stdout, stderr } = await runStrongroom(argv, { cwd });
    expect([code, stdout]).toEqual([78, '']);
    expect(stderr).toMatch(/^strongroom server: there is no configuration\n.*-c strongroom\.yaml\n.*strongroom init\n/);
    expect(readdirSync(cwd)).toEqual([]);
  });

  it('one variable or one flag is a configuration', async () => {
    const cwd = emptyFolder();
    const check = ['server', '--check', '--offline'];
    const byVariable = await runStrongroom(check, { cwd, env: { SVC_NETWORK: 'hoodi' } });
    const byFlag = await runStrongroom([...check, '--network', 'hoodi'], { cwd });
    expect([byVariable.code, byFlag.code]).toEqual([0, 0]);
  });
});
