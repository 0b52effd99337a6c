// The help of every program: it fits the terminal, says how each command is used, and loads nothing but descriptions.

import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { describeAll, OVERVIEW } from '../../bin/programs.ts';
import { type Description, toldFlags, walkDescriptions } from '../../common/command-line/command.ts';
import { renderHelp } from '../../common/command-line/help.ts';
import { columnsOf } from '../../common/command-line/wrap.ts';
import { VERSION } from '../../signer/api/version.ts';

const BIN = join(import.meta.dirname, '../../bin');
const all = [...walkDescriptions(await describeAll())];

const EXAMPLES = /^Examples:\n(?: .*\n)*/m;

/** Examples are copied, so they stay whole; so does a name that is longer than a line. */
function tooWide(help: string, columns: number): string[] {
  return help
    .replace(EXAMPLES, '')
    .split('\n')
    .filter((line) => line.length > columns && / \S+ /.test(line.trim()));
}

describe.each([80, 120])('at %i columns', (columns) => {
  it.each(all.map(({ path, description }) => [path.join(' '), description] as const))(
    'strongroom %s fits, and names its flags and commands',
    (path, description) => {
      const help = renderHelp(path === '' ? [] : path.split(' '), description, columns);
      expect(tooWide(help, columns)).toEqual([]);
      const words = [
        ...Object.keys(toldFlags(description)).map((name) => `--${name}`),
        ...Object.keys(description.commands ?? {}),
      ];
      expect(words.filter((word) => !help.includes(`  ${word}`) && !help.includes(`, ${word}`))).toEqual([]);
    },
  );
});

it('a note is a whole paragraph: it is wrapped where the terminal ends', () => {
  const notes = all.flatMap(({ description: { notes = [] } }) => notes).filter((note) => !note.startsWith(' '));
  expect(notes.length).toBeGreaterThan(20);
  expect(notes.filter((note) => !/[.:]$/.test(note))).toEqual([]);
});

it('says what a command takes, breaks lines between words, and keeps terms of equal length in a column', () => {
  const description: Description = {
    summary: 'Move a key from one place to another one that is far away',
    argument: { name: 'KEY', meaning: 'A public key', count: 'many' },
    flags: {
      to: { placeholder: 'PLACE', required: true, choices: ['here', 'there'], meaning: 'Where to' },
      'a-flag-with-a-very-long-name-indeed': { placeholder: 'TEXT', meaning: 'Why' },
    },
    examples: ['strongroom move 0x80 --to there', 'strongroom move 0x80 0x81 \\\n  --to there'],
  };
  expect(renderHelp(['move'], description, 50)).toBe(`strongroom move: Move a key from one place to
another one that is far away

Usage: strongroom move KEY… --to here|there
         [OPTIONS]

Examples:
  strongroom move 0x80 --to there
  strongroom move 0x80 0x81 \\
    --to there

Arguments:
  KEY  A public key

Options:
  --to here|there  Where to (needed)
  --a-flag-with-a-very-long-name-indeed TEXT
                   Why
  -h, --help       Show this text
`);
});

it('a line of usage is broken before a flag or a bracket, never within', () => {
  const usage = ['-c CONFIG --administrator ARN [--pcrs FILE]... [--as-minimal | --complete]', '--again FILE'];
  expect(renderHelp(['move'], { summary: 'Move', usage }, 50)).toContain(`Usage:
  strongroom move -c CONFIG --administrator ARN
    [--pcrs FILE]... [--as-minimal | --complete]
  strongroom move --again FILE
`);
});

it('a terminal says how wide it is; a pipe gets 100 columns', () => {
  expect(columnsOf({ columns: 80 })).toBe(80);
  expect(columnsOf({ columns: 300 })).toBe(120);
  expect(columnsOf({ columns: 10 })).toBe(40);
  expect(columnsOf({ columns: 0 })).toBe(100);
  expect(columnsOf({})).toBe(100);
});

describe('the program', () => {
  // Node itself warns on stderr where both this and NO_COLOR are set.
  const { FORCE_COLOR: _, ...env } = process.env;
  const run = (...argv: string[]) => spawnSync(join(BIN, 'strongroom'), argv, { encoding: 'utf8', env });

  it('prints help wherever it is asked for, and to stderr where a command is missing', () => {
    expect(run('--help')).toMatchObject({ status: 0, stdout: renderHelp([], OVERVIEW) });
    expect(run()).toMatchObject({ status: 1, stderr: renderHelp([], OVERVIEW) });
    const slashing = all.find(({ path }) => path.join(' ') === 'slashing')?.description as Description;
    expect(run('slashing', 'help')).toMatchObject({ status: 0, stdout: renderHelp(['slashing'], slashing) });
    expect(run('slashing')).toMatchObject({ status: 1, stderr: renderHelp(['slashing'], slashing) });
    const jump = slashing.commands?.['jump'] as Description;
    const wrong = run('slashing', 'jump', '--nonsense', '-h');
    expect(wrong).toMatchObject({ status: 0, stdout: renderHelp(['slashing', 'jump'], jump), stderr: '' });
  });

  it('ends without a word when nobody reads on, and with one when what it prints cannot be written', () => {
    const ended = (to: string) =>
      spawnSync('bash', ['-c', `set -o pipefail; "$0" completion zsh ${to}`, join(BIN, 'strongroom')], {
        encoding: 'utf8',
      });
    expect(ended('| true')).toMatchObject({ status: 1, stderr: '' });
    if (!existsSync('/dev/full')) return;
    const said = 'strongroom: what it prints cannot be written (ENOSPC)\n';
    expect(ended('> /dev/full')).toMatchObject({ status: 1, stderr: said });
  });

  it('says the commit that git knows', () => {
    const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: BIN, encoding: 'utf8' });
    const known = status === 0 ? `${stdout.trim()}(?:-modified)?` : 'unknown';
    expect(run('-v').stdout).toMatch(new RegExp(`^strongroom ${VERSION}, commit ${known}\n$`));
  });

  it('an option of neither program is a slip, and one of Web3Signer asks for its mode', () => {
    expect(run('--verison')).toMatchObject({ status: 1, stderr: expect.stringContaining('did you mean --version?') });
    expect(run('-x')).toMatchObject({ status: 1, stderr: expect.stringContaining('there is no option -x') });
    const withoutMode = { status: 78, stderr: expect.stringContaining('the command line does not say eth2') };
    expect(run('--key-store-path=/nonexistent')).toMatchObject(withoutMode);
    expect(run('-l', 'debug')).toMatchObject(withoutMode);
    const wrong = expect.stringContaining('--htp-listen-port is not an option of Web3Signer');
    expect(run('--htp-listen-port=3', 'eth2')).toMatchObject({ status: 78, stderr: wrong });
  });

  it('leaves words that are no command to the program', () => {
    expect(run('slashing', 'exprot', '--help')).toMatchObject({ status: 1, stdout: '' });
    expect(run('servre')).toMatchObject({ status: 1, stderr: expect.stringContaining('did you mean server?') });
  });

  it('help and completion load no source of a program and no package: they read what is written down', () => {
    for (const words of [
      ['server', '--help'],
      ['operator', 'status', '--help'],
      ['completion', 'bash'],
    ]) {
      const loaded = modulesOf(words);
      expect(loaded.filter((url) => url.endsWith('bin/descriptions.json'))).toHaveLength(1);
      expect(loaded.filter((url) => url.startsWith('file:') && !OF_THE_FRONT.test(url))).toEqual([]);
    }
  });

  it('the names of profiles, which the Tab key asks for, come without the schemas of profiles', () => {
    expect(modulesOf(['completion', 'profiles']).filter((url) => url.includes('node_modules/zod/'))).toEqual([]);
  });
});

const OF_THE_FRONT = /\/(?:bin|command-line)\/[a-z-]+\.(?:ts|json)$/;

function modulesOf(words: readonly string[]): string[] {
  const hook = `import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const argv = [
    '--disable-warning=ExperimentalWarning',
    '--import',
    `data:text/javascript,${encodeURIComponent(hook)}`,
    join(BIN, 'strongroom.ts'),
    ...words,
  ];
  const { status, stderr } = spawnSync(join(BIN, 'pinned-node'), argv, { encoding: 'utf8' });
  expect(status).toBe(0);
  return stderr.split('\n');
}
