// `strongroom ceremony …` as a person uses it: through the launcher, with real files, looking at stdout, stderr and the
// exit code.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encryptToRecipients } from '../../ceremony/age.ts';
import { generateAgeIdentity } from '../../ceremony/age-identity.ts';
import { ceremonyTree, main } from '../../ceremony/main.ts';
import { encryptRootToken } from '../../ceremony/root-token.ts';
import { followWords } from '../../common/command-line/command.ts';
import { renderHelp } from '../../common/command-line/help.ts';
import { describeGroup } from '../../common/command-line/program.ts';
import { extendedOnce } from '../../common/formats/register.ts';
import { keyArn } from '../config/loading.ts';
import { RECIPIENT } from './custody.ts';

const PROGRAM = fileURLToPath(new URL('../../bin/strongroom', import.meta.url));
const COMMANDS = [
  ...['plan', 'script', 'keygen', 'check-identity', 'open-root-token'],
  ...['start', 'person', 'statement', 'file', 'pcrs', 'master-key', 'end'].map((kind) => `record ${kind}`),
  ...['transcript verify', 'transcript page'],
];
const TOKEN = `sr_mgmt_${'t'.repeat(43)}`;
const CEREMONY = {
  generation: 1,
  kms_threshold: 2,
  kms_keys: [{ arns: [keyArn(1)] }, { arns: [keyArn(2, 'us-east-1')] }, { arns: [keyArn(3, 'eu-west-1')] }],
  root_token_recipients: [RECIPIENT],
};

/** As `sha384sum` has it. */
const DIGEST = 'c6c79883814a8cd6b222869876c0195d35b932215c67d01e872d470e7f88dcbcb1449f440638cdb4b6f416786dfcd6b3';

const alice = await generateAgeIdentity();
const ARMORED = await encryptRootToken(Buffer.from(TOKEN), [alice.recipient]);
const FOR_SOMEBODY_ELSE = await encryptRootToken(Buffer.from(TOKEN), [RECIPIENT]);
const PLANTED = await encryptToRecipients(Buffer.from('\u001b[2J'), [alice.recipient]);
let directory: string;

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'strongroom-ceremony-'));
});

afterAll(() => {
  rmSync(directory, { recursive: true });
});

function file(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(argv: readonly string[], stdin = ''): Promise<Ran> {
  const written = { stdout: '', stderr: '' };
  const collect = (name: 'stdout' | 'stderr') => ({
    write: (text: string) => {
      written[name] += text;
    },
  });
  const input = (async function* () {
    yield Buffer.from(stdin);
  })();
  const code = await main(argv, { env: {}, stdin: input, stdout: collect('stdout'), stderr: collect('stderr') });
  return { code, ...written };
}

describe('the launcher', () => {
  it('finds the commands, and passes exit codes, stdin and stdout on', () => {
    const identity = file('launcher.age', `\ufeff${alice.identity}\r\n`); // as an editor of Windows writes it
    const argv = ['ceremony', 'open-root-token', '--identity', identity, '--row', '-'];
    const opened = spawnSync(PROGRAM, argv, { input: ARMORED, encoding: 'utf8' });
    expect(opened).toMatchObject({ status: 0, stdout: `${TOKEN}\n`, stderr: '' });
    expect(spawnSync(PROGRAM, ['ceremony', 'plan'], { encoding: 'utf8' })).toMatchObject({ status: 1, stdout: '' });
  });
});

describe('help', () => {
  it.each(COMMANDS)('of %s has two examples', async (command) => {
    const { description } = followWords(await describeGroup(ceremonyTree()), command.split(' '));
    expect(
      renderHelp(['ceremony'], description)
        .split('Examples:\n')[1]
        ?.split('\n\n')[0]
        ?.match(/^ {2}\S/gm),
    ).toHaveLength(2);
  });

  it('the commands are named when an unknown one is given', async () => {
    const words = 'there is no command seal; there are: plan, script, keygen, check-identity, open-root-token';
    expect(await run(['seal'])).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(words) });
    const group = /no command nothing; there are: start, person/;
    expect(await run(['record', 'nothing'])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(group),
    });
  });
});

describe('a command line is refused with exit 1 when', () => {
  it.each<[string, string[], string]>([
    ['a flag is unknown', ['plan', 'x.yaml', '--yess'], 'there is no flag --yess'],
    ['a flag is repeated', ['keygen', '--output', 'a', '--output', 'b'], '--output is given more than once'],
    ['a flag has no value', ['keygen', '--output'], '--output has no value'],
    ['a flag has an empty value', ['keygen', '--output='], '--output has no value\n  write --output=FILE'],
    ['a word is too many', ['plan', 'x.yaml', 'y.yaml'], 'this command takes one FILE'],
    ['the file is missing', ['plan'], 'FILE is needed: YAML'],
    [
      'a choice is none',
      ['record', 'person', 't.jsonl', '--name', 'A', '--role', 'guest'],
      '--role is one of lead, custodian, participant, operator, witness, not guest',
    ],
    ['the file is not there', ['plan', '/nonexistent/x.yaml'], 'ENOENT'],
    ['the identity is missing', ['open-root-token', '--row', '-'], '--identity'],
    ['the ceremony is missing', ['check-identity', '--identity', 'x'], 'FILE is needed'],
    ['the identity to check is missing', ['check-identity', 'x.yaml'], '--identity'],
    ['the row is missing', ['open-root-token', '--identity', 'x'], '--row'],
  ])('%s', async (_, argv, words) => {
    const { code, stdout, stderr } = await run(argv);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(words);
  });
});

describe('plan', () => {
  it('prints the definition, the digest, the losses and the warnings', async () => {
    const { code, stdout, stderr } = await run(['plan', file('c.yaml', JSON.stringify(CEREMONY))]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`Ceremony generation 1: 2 of 3 custody keys open the master key
Digest (SHA-384) ${DIGEST}
PCR17            ${extendedOnce(Buffer.from(DIGEST, 'hex')).toString('hex')}

Custody keys
    1  ${keyArn(1)}
    2  ${keyArn(2, 'us-east-1')}
    3  ${keyArn(3, 'eu-west-1')}

Root token recipients
    1  ${RECIPIENT}

Losses
  any 1 custody key        survivable, 2 custody keys left
  account 111122223333     NOT survivable, 0 custody keys left
  region eu-central-1      survivable, 2 custody keys left
  region eu-west-1         survivable, 2 custody keys left
  region us-east-1         survivable, 2 custody keys left

Warnings
  account 111122223333 holds 3 custody keys and 2 suffice: whoever administers it can open the master key alone
  the loss of account 111122223333 leaves 0 of the 2 custody keys that are needed
  there is one root token recipient: if that identity is lost the root token has to be made again
`);
  });

  it('prints the same as JSON, from a configuration that has the block', async () => {
    const path = file('config.yaml', JSON.stringify({ network: 'mainnet', ceremony: CEREMONY }));
    const { code, stdout } = await run(['plan', path, '--json']);
    expect(code).toBe(0);
    const plan = JSON.parse(stdout) as { canonical: string };
    expect(plan).toMatchObject({
      ceremony: { ...CEREMONY, retired_kms_keys: [] },
      survivable_key_losses: 1,
      digest_sha384: expect.stringMatching(/^[0-9a-f]{96}$/),
      pcr17: expect.stringMatching(/^[0-9a-f]{96}$/),
      warnings: [{ code: 'account_holds_threshold' }, { code: 'account_loss' }, { code: 'single_recipient' }],
    });
    expect(plan.canonical).toMatch(/^strongroom ceremony v1\n\{.*\}\n$/);
  });

  it('refuses an invalid ceremony with every reason', async () => {
    const bad = { ...CEREMONY, kms_threshold: 9, root_token_recipients: ['age1'], generation: 0 };
    const { code, stdout, stderr } = await run(['plan', file('bad.yaml', JSON.stringify(bad))]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain('  generation ');
    expect(stderr).toContain('  root_token_recipients[0] must be an age X25519 public key');
  });

  it.each([
    ['age1pq1abc', 'with a valid checksum: this is a post-quantum key'],
    ['age1yubikey1abc', 'with a valid checksum: this is the key of a plugin'],
    ['ssh-ed25519 AAAA', 'with a valid checksum: this is a key of SSH'],
    ['AGE-SECRET-KEY-PQ-1ABC', 'this is a SECRET key: make another one'],
  ])('says which kind of key %s is', async (recipient, says) => {
    const bad = { ...CEREMONY, root_token_recipients: [recipient] };
    const { stderr } = await run(['plan', file('bad.yaml', JSON.stringify(bad))]);
    expect(stderr).toContain(says);
    expect(stderr).not.toContain('ABC');
  });

  it.each([
    ['a repeated key', 'generation: 1\ngeneration: 2\n', 'line 2: a key is repeated'],
    ['an alias', 'generation: &one 1\nkms_threshold: *one\n', 'line 1: an anchor is used'],
    ['a tag', 'generation: !env GENERATION\n', 'line 1: a tag is used'],
    ['two documents', 'generation: 1\n---\ngeneration: 2\n', 'line 2: there is more than one document'],
  ])('refuses YAML with %s', async (_, yaml, words) => {
    const { code, stderr } = await run(['plan', file('strict.yaml', yaml)]);
    expect(code).toBe(1);
    expect(stderr).toContain(words);
  });
});

describe('keygen', () => {
  it('writes the identity for its owner alone and prints the recipient', async () => {
    const path = join(directory, 'new.age');
    const { code, stdout, stderr } = await run(['keygen', '--output', path]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^age1[a-z0-9]{58}\n$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const text = readFileSync(path, 'utf8');
    expect(text).toContain(`# recipient: ${stdout}`);
    expect(text).toMatch(/^AGE-SECRET-KEY-1[A-Z0-9]{58}$/m);
    expect(stdout + stderr).not.toContain('AGE-SECRET-KEY');
    const row = file('row.age', await encryptRootToken(Buffer.from(TOKEN), [stdout.trim()]));
    expect(await run(['open-root-token', '--identity', path, '--row', row])).toMatchObject({
      code: 0,
      stdout: `${TOKEN}\n`,
    });
  });

  it('never overwrites a file', async () => {
    const path = file('kept.age', 'kept');
    expect(await run(['keygen', '--output', path])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`${path} exists already and is not overwritten`),
    });
    expect(readFileSync(path, 'utf8')).toBe('kept');
  });
});

describe('open-root-token', () => {
  const attribute = { S: ARMORED };
  const item = { pk: { S: 'ROOT_TOKEN_BOOTSTRAP' }, value: attribute };
  const open = (row: string, identity = `${alice.identity}\n`) =>
    run(['open-root-token', '--identity', file('alice.age', identity), '--row', '-'], row);

  it.each([
    ['as get-item prints it', JSON.stringify({ Item: item, ConsumedCapacity: {} }, undefined, 4)],
    ['as --query Item prints it', JSON.stringify(item)],
    ['as --query Item.value.S prints it', JSON.stringify(ARMORED)],
    ['as the armored text', ARMORED],
    ['as the armored text with CRLF', ARMORED.replaceAll('\n', '\r\n')],
  ])('takes the row %s', async (_, row) => {
    expect(await open(row)).toEqual({ code: 0, stdout: `${TOKEN}\n`, stderr: '' });
  });

  it.each<[string, string, string]>([
    [
      'another row',
      JSON.stringify({ Item: { ...item, pk: { S: 'MASTER_KEY' } } }),
      'the row is not ROOT_TOKEN_BOOTSTRAP',
    ],
    ['no row', '{}', 'the row has no value'],
    ['nothing', '', 'no armored age text'],
    ['a damaged text', ARMORED.replace(/^(?!-).{10}/m, 'AAAAAAAAAA'), 'damaged'],
    ['a token for somebody else', FOR_SOMEBODY_ELSE, 'not encrypted to this identity'],
    ['what somebody else planted', PLANTED, 'not a root token'],
    ['too much', 'x'.repeat(1024 * 1024 + 1), 'has more than 1048576 bytes: is it the right file?'],
  ])('refuses %s', async (_, row, words) => {
    const { code, stdout, stderr } = await open(row);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(words);
  });

  const NEITHER = 'has a line that is neither an age X25519 identity';
  it.each([
    ['is empty', '# a comment\n\n', 'holds no identity'],
    ['holds a recipient', `${alice.recipient}\n`, NEITHER],
    ['holds a mistyped one', `${alice.identity.replace(/.$/, (last) => (last === 'Q' ? 'P' : 'Q'))}\n`, NEITHER],
  ])('refuses an identity file that %s, and repeats nothing of it', async (_, text, words) => {
    const { code, stdout, stderr } = await open(ARMORED, text);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toContain(words);
    expect(stderr).not.toContain(alice.identity.slice(20, 40));
  });

  it('takes comments and several identities', async () => {
    const { identity } = await generateAgeIdentity();
    expect(await open(ARMORED, `# old\n${identity}\n\n# new\n${alice.identity}\n`)).toMatchObject({
      code: 0,
      stdout: `${TOKEN}\n`,
    });
  });
});
