// The completion scripts in the shells they are for: real bash and zsh on a terminal, where a key inserts everything
// that could come, and fish, which says it. Every program is asked for its words, flags, choices and files.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeAll } from '../../bin/programs.ts';
import { type Description, toldFlags, walkDescriptions } from '../../common/command-line/command.ts';
import { completionScript, type Shell } from '../../common/command-line/completion.ts';
import { lacking } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';

const BIN = join(import.meta.dirname, '../../bin');

const ASKED: readonly (readonly [typed: string, offers: readonly string[]])[] = [
  ['strongroom ', ['server', 'slashing', 'ceremony', 'setup', 'operator', 'eif', 'web3signer', 'parent-proxy']],
  ['strongroom server --anti-slashing-back', ['--anti-slashing-backend']],
  ['strongroom server --anti-slashing-backend ', ['noop', 'sqlite', 'postgres', 'dynamodb']],
  ['strongroom server --check --config rec', ['records.json']],
  ['strongroom slashing ', ['export', 'import', 'jump', 'prune', 'reinstate', 'retire', 'status']],
  ['strongroom slashing import -c ', ['records.json']],
  ['strongroom slashing import rec', ['records.json']],
  ['strongroom ceremony ', ['plan', 'keygen', 'open-root-token', 'rehearse']],
  ['strongroom ceremony open-root-token --', ['--identity', '--row', '--help']],
  ['strongroom setup ', ['tables', 'iam', 'kms-policy']],
  ['strongroom setup tables --pr', ['--print']],
  ['strongroom operator auth policy de', ['delete']],
  // a value that looks like a command leads nobody astray
  ['strongroom operator auth policy get --name seal --allow', ['--allow-plaintext-signer']],
  ['strongroom operator auth policy create --preset ', ['validator-client', 'monitoring', 'key-admin', 'break-glass']],
  ['strongroom operator keys import keystores --storage ', ['table', 'memory']],
  ['strongroom operator status --profile ', ['default', 'frankfurt']],
  ['strongroom operator top --replica ', ['default', 'frankfurt']],
  ['strongroom operator keys list --source ', ['filesystem', 'dynamodb', 'memory']],
  ['strongroom operator status --tls-ca rec', ['records.json']],
  ['strongroom eif ', ['build', 'describe', 'compare']],
  ['strongroom eif build --fetch', ['--fetch-config']],
  ['strongroom web3signer --data-path eth2 et', ['eth2']],
  ['strongroom web3signer --data-path=x eth2 ', ['export', 'import', 'watermark-repair']],
  ['strongroom web3signer eth2 --keystores-pa', ['--keystores-path', '--keystores-passwords-path']],
  ['strongroom parent-proxy --', ['--check', '--config', '--help']],
  ['strongroom completion ', ['bash', 'zsh', 'fish']],
];
const ALONE = ['strongroom slashing import rec', 'strongroom operator auth policy de', 'strongroom setup tables --pr'];

let folder: string;
let everything: Description;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-completion-'));
  mkdirSync(join(folder, '.config/strongroom'), { recursive: true });
  writeFileSync(join(folder, '.config/strongroom/operator.yaml'), 'profiles: { default: {}, frankfurt: {} }\n');
  writeFileSync(join(folder, 'records.json'), '{}');
  everything = await describeAll();
});

afterAll(() => rmSync(folder, { recursive: true }));

describe.each(['bash', 'zsh', 'fish'] as const)('%s', (shell) => {
  const lacks = shell === 'bash' ? lacking('script') : lacking(shell, 'script');

  it.skipIf(lacks)('offers what can come next, of every program', () => {
    const offered = offers(shell);
    for (const [typed, expected] of ASKED) {
      const words = ALONE.includes(typed) ? expected : expect.arrayContaining([...expected]);
      expect({ typed, words: offered.get(typed) }).toEqual({ typed, words });
    }
  });

  it('has every command and every flag of every program', () => {
    const script = completionScript(shell, everything);
    const all = [...walkDescriptions(everything)];
    const words = all.flatMap(({ path, description }) => [
      ...path,
      ...Object.keys(toldFlags(description)).map((flag) => `--${flag}`),
    ]);
    expect(words.length).toBeGreaterThan(500);
    expect(words.filter((word) => !script.includes(word))).toEqual([]);
  });
});

it.each(['zsh', 'fish'] as const)('%s is told what each word and each flag means', (shell) => {
  const script = completionScript(shell, everything);
  const separator = shell === 'zsh' ? ':' : '\t';
  expect(script).toContain(`'status${separator}Show the seal state`);
  expect(script).toContain(`'--check${separator}Find everything that would stop a start`);
});

it('the command prints the script, and names the shells that it knows', () => {
  const run = (...argv: string[]) => spawnSync(join(BIN, 'strongroom'), argv, { encoding: 'utf8' });
  expect(run('completion', 'bash')).toMatchObject({ status: 0, stdout: completionScript('bash', everything) });
  expect(run('completion', 'tcsh')).toMatchObject({ status: 1, stderr: expect.stringContaining('bash, zsh, fish') });
});

function offers(shell: Shell): Map<string, string[]> {
  const script = join(folder, shell === 'zsh' ? '_strongroom' : `completion.${shell}`);
  writeFileSync(script, completionScript(shell, everything));
  return shell === 'fish' ? offersOfFish(script) : offersOnTerminal(shell, script);
}

function offersOfFish(script: string): Map<string, string[]> {
  const lines = ASKED.map(([typed]) => `complete -C'${typed}'; echo @@`);
  const { stdout } = run('fish', ['-N', '-c', `source ${script}; ${lines.join('; ')}`]);
  const answers = stdout.split('@@\n');
  return new Map(ASKED.map(([typed], at) => [typed, (answers[at] ?? '').split('\n').map(wordOf).filter(isWord)]));
}

/** `word⇥meaning` */
function wordOf(line: string): string {
  return line.split('\t', 1)[0] ?? '';
}

/** The key inserts all that could come; then the line becomes one of `echo`, which says it. */
function offersOnTerminal(shell: 'bash' | 'zsh', script: string): Map<string, string[]> {
  const input = [
    ...START[shell](script),
    ...ASKED.map(([typed]) => `${typed}${INSERT_ALL[shell]}\x01echo "@"@ `),
    'exit',
  ];
  // `script` makes the terminal; a wide one, because a line that wraps is drawn twice.
  const command = `stty cols 4000; exec ${SHELL[shell]}`;
  const { stdout } = run('script', ['-qec', command, '/dev/null'], input.map((line) => `${line}\r`).join(''));
  const answers = [...stdout.matchAll(/@@ (.*?)\r/g)].map(([, answer = '']) => answer);
  if (answers.length !== ASKED.length) throw new Error(`an answer is missing: ${stdout.slice(-2000)}`);
  return new Map(
    ASKED.map(([typed], at) => {
      const before = typed.slice(0, typed.lastIndexOf(' ') + 1);
      return [typed, (answers[at] ?? '').slice(before.length).split(' ').filter(isWord)];
    }),
  );
}

const SHELL = { bash: 'bash --norc --noprofile -i', zsh: 'zsh -f -i' } as const;
const INSERT_ALL = { bash: '\x1b*', zsh: '\x18a' } as const;
const START = {
  bash: (script: string) => [`PS1="> "; source ${script}`],
  zsh: (script: string) => [
    `PS1="> "; fpath=(${join(script, '..')} $fpath); autoload -Uz compinit; compinit -u -D`,
    'zle -C all-matches complete-word _generic; bindkey -e; bindkey "^Xa" all-matches',
    'zstyle ":completion:all-matches::::" completer _all_matches _complete',
    'zstyle ":completion:all-matches:*" insert true',
  ],
} as const;

function isWord(word: string): boolean {
  return word !== '';
}

function run(program: string, argv: readonly string[], input = ''): { readonly stdout: string } {
  const env = { PATH: `${BIN}:${process.env['PATH']}`, HOME: folder, TERM: 'dumb', LC_ALL: 'C.UTF-8' };
  return spawnSync(program, argv, { cwd: folder, env, input, encoding: 'utf8', timeout: LONGEST_WAIT_MS });
}
