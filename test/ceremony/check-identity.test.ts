// `strongroom ceremony check-identity`, and whoever opens with an identity: this program, or the real program age at a
// terminal, with a passphrase and with a plugin. An identity is proven by what it opens, and never shown.

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { armor, Encrypter } from 'age-encryption';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { generateAgeIdentity } from '../../ceremony/age-identity.ts';
import { main } from '../../ceremony/main.ts';
import { encryptRootToken } from '../../ceremony/root-token.ts';
import { keyArn } from '../config/loading.ts';
import { HELD_KEY_IDENTITY } from '../support/age-plugin-heldkey.ts';
import { lacking } from '../support/needs.ts';
import { atTerminal } from '../support/pseudo-terminal.ts';
import { RECIPIENT } from './custody.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAM = join(ROOT, 'bin/strongroom');
const PASSPHRASE = 'correct horse battery';
const TOKEN = `sr_mgmt_${'t'.repeat(43)}`;

const alice = await generateAgeIdentity();
const bob = await generateAgeIdentity();
const mallory = await generateAgeIdentity();
const RECIPIENTS = [RECIPIENT, alice.recipient, bob.recipient];
const ROW = JSON.stringify({
  Item: {
    pk: { S: 'ROOT_TOKEN_BOOTSTRAP' },
    value: { S: await encryptRootToken(Buffer.from(TOKEN), RECIPIENTS) },
  },
});

let folder: string;
let ceremony: string;

function file(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return path;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-identity-'));
  ceremony = file(
    'ceremony.yaml',
    JSON.stringify({
      generation: 1,
      kms_threshold: 1,
      kms_keys: [{ arns: [keyArn(1)] }],
      root_token_recipients: RECIPIENTS,
    }),
  );
  file('alice.age', `${alice.identity}\n`);
  file('row.json', ROW);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function check(args: readonly string[], env: Record<string, string> = {}) {
  const said = { stdout: '', stderr: '' };
  const to = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (said[name] += text) });
  const stdin = (async function* () {})();
  const argv = ['check-identity', ceremony, ...args];
  const code = await main(argv, { env, stdin, stdout: to('stdout'), stderr: to('stderr') });
  const secrets = [alice, bob, mallory].map(({ identity }) => identity.slice(16, 40));
  for (const secret of secrets) expect(said.stdout + said.stderr).not.toContain(secret);
  return { code, ...said };
}

describe('an identity in the clear', () => {
  it('is proven for the recipients that it opens, by number and in full', async () => {
    const { code, stdout, stderr } = await check(['--identity', join(folder, 'alice.age')]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'strongroom: opened by strongroom (X25519 identity)\n' });
    expect(stdout).toMatch(/^Ceremony generation 1, digest \(SHA-384\) [0-9a-f]{96}\nPROVEN: .*\n$/);
    expect(stdout).toContain(`recipient 2 of 3, ${alice.recipient}\n`);
    const both = file('both.age', `# ours\n${alice.identity}\n${bob.identity}\n`);
    expect((await check(['--identity', both])).stdout.match(/recipient [23] of 3/g)).toHaveLength(2);
  });

  it.each([['2'], [alice.recipient]])('is proven for the recipient that is named: %s', async (recipient) => {
    const { code, stdout } = await check(['--identity', join(folder, 'alice.age'), '--recipient', recipient]);
    expect({ code, proven: stdout.match(/PROVEN/g)?.length }).toEqual({ code: 0, proven: 1 });
  });

  it.each([
    [
      'of nobody in the ceremony',
      mallory.identity,
      [],
      'NOT PROVEN: this identity does not open what is encrypted to any',
    ],
    ['of another recipient', bob.identity, ['--recipient', '2'], 'NOT PROVEN: .* to that recipient'],
    ['for a recipient that is none', alice.identity, ['--recipient', '4'], 'give its number, 1 to 3'],
    ['for a recipient of somewhere else', alice.identity, ['--recipient', mallory.recipient], 'root_token_recipients'],
    ['of another kind', 'AGE-SECRET-KEY-PQ-1QQQQ', [], 'neither an age X25519 identity'],
  ])('%s is not proven: exit 1, and nothing on stdout', async (_, identity, args, words) => {
    const path = file('tried.age', `${identity}\n`);
    const { code, stdout, stderr } = await check(['--identity', path, ...args]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(new RegExp(words));
  });

  it('that others can read is warned of', async () => {
    const path = file('open.age', `${alice.identity}\n`);
    chmodSync(path, 0o640);
    expect((await check(['--identity', path])).stderr).toContain(`chmod 600 ${path}`);
  });
});

describe('an identity that only age opens', () => {
  it.each([
    ['a passphrase', 'age-encryption.org/v1\n-> scrypt', 'holds a passphrase-protected identity'],
    ['a plugin', HELD_KEY_IDENTITY, 'holds a plugin identity'],
  ])('because of %s is refused where age is not installed, which is said', async (_, text, words) => {
    const { code, stdout, stderr } = await check(['--identity', file('absent.age', text), '--recipient', '2']);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).toContain('age is not on the PATH; install it');
  });

  it('is refused where the age that the PATH names cannot be run, which is said', async () => {
    const bin = join(folder, 'broken');
    mkdirSync(bin);
    writeFileSync(join(bin, 'age'), '#!/nonexistent/interpreter\n', { mode: 0o755 });
    const identity = file('protected.age', 'age-encryption.org/v1\n-> scrypt');
    expect(await check(['--identity', identity, '--recipient', '2'], { PATH: bin })).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('the program age that the PATH names cannot be run (ENOENT)'),
    });
  });

  it('needs the recipient’s name, because age asks for each challenge', async () => {
    const { code, stderr } = await check(['--identity', file('unnamed.age', HELD_KEY_IDENTITY)]);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('name yours with --recipient') });
  });
});

describe.skipIf(lacking('age', 'jq', 'script'))('with the real program age, at a terminal,', () => {
  const asked = [{ prompt: 'Enter passphrase', answer: PASSPHRASE }];
  const strongroom = (args: string): string => `'${PROGRAM}' ceremony ${args}`;

  beforeAll(async () => {
    // As `age -p` makes it (participants-guide.test.ts), and much quicker to open.
    const encrypter = new Encrypter();
    encrypter.setPassphrase(PASSPHRASE);
    encrypter.setScryptWorkFactor(10);
    file('bob-passphrase.age', armor.encode(await encrypter.encrypt(`${bob.identity}\n`)));
  });

  it('an identity under a passphrase is proven, and opens the root token', async () => {
    const identity = '--identity bob-passphrase.age';
    const checked = strongroom(`check-identity ceremony.yaml ${identity} --recipient 3 >proof`);
    expect(await atTerminal(checked, asked, { cwd: folder })).toMatchObject({
      code: 0,
      shown: expect.stringContaining('opened by age (passphrase-protected identity)'),
    });
    expect(readFileSync(join(folder, 'proof'), 'utf8')).toContain(
      `PROVEN: this identity opens what is encrypted to recipient 3`,
    );
    const opened = strongroom(`open-root-token ${identity} --row row.json >token`);
    const { code, shown } = await atTerminal(opened, asked, { cwd: folder });
    expect({ code, token: readFileSync(join(folder, 'token'), 'utf8') }).toEqual({ code: 0, token: `${TOKEN}\n` });
    expect(shown).not.toContain(TOKEN);
  });

  it('a wrong passphrase, and the identity of another recipient, prove nothing', async () => {
    const command = strongroom('check-identity ceremony.yaml --identity bob-passphrase.age --recipient');
    const wrong = [{ prompt: 'Enter passphrase', answer: 'incorrect' }];
    expect(await atTerminal(`${command} 3`, wrong, { cwd: folder })).toMatchObject({
      code: 1,
      shown: expect.stringMatching(/incorrect passphrase[\s\S]*age did not open it[\s\S]*stands above/),
    });
    expect(await atTerminal(`${command} 2`, asked, { cwd: folder })).toMatchObject({
      code: 1,
      shown: expect.stringMatching(/NOT PROVEN: this identity does not open what is encrypted to\s+that recipient/),
    });
  });

  it('jq and age alone open the root token, which the guide has as its main way', () => {
    const command = 'jq -r .Item.value.S row.json | age -d -i alice.age';
    const opened = execFileSync('sh', ['-c', command], { cwd: folder, encoding: 'utf8' });
    expect(opened).toBe(TOKEN);
  });

  describe('a plugin’s identity', () => {
    const identity = `# recipient: ${alice.recipient}\n${HELD_KEY_IDENTITY}\n`;
    let bin: string;

    beforeAll(() => {
      bin = join(folder, 'bin');
      mkdirSync(bin);
      symlinkSync(execFileSync('which', ['age'], { encoding: 'utf8' }).trim(), join(bin, 'age'));
      file('held.age', identity);
    });

    it('is refused where the plugin is not installed, which is named', async () => {
      const { code, stderr } = await check(['--identity', join(folder, 'held.age')], { PATH: bin });
      expect({ code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('age-plugin-heldkey is not on the PATH; install it beside age'),
      });
    });

    it('is proven by what the plugin opens, for the recipient that its comment names', async () => {
      const plugin = join(ROOT, 'test/support/age-plugin-heldkey.ts');
      const script = `#!/bin/sh\nexec '${process.execPath}' '${plugin}' "$@"\n`;
      writeFileSync(join(bin, 'age-plugin-heldkey'), script, { mode: 0o755 });
      const env = (held: string): Record<string, string> => ({ PATH: `${bin}:/bin`, HELDKEY_FILE: join(folder, held) });
      const args = ['--identity', join(folder, 'held.age')];
      const { code, stdout, stderr } = await check(args, env('alice.age'));
      expect({ code, stderr }).toEqual({ code: 0, stderr: 'strongroom: opened by age (plugin identity)\n' });
      expect(stdout.match(/PROVEN: .* recipient 2 of 3/g)).toHaveLength(1);
      file('mallory.age', `${mallory.identity}\n`);
      expect(await check(args, env('mallory.age'))).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('NOT PROVEN'),
      });
    });
  });
});
