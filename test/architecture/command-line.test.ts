// One reader of arguments, one table of exit codes, one terminal: command-line/. A second one would refuse less,
// or mean another thing.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { command } from '../../common/command-line/program.ts';
import type { Printed } from '../../common/command-line/terminal.ts';
import type { SlashingTerminal } from '../../service/commands/slashing-command.ts';
import { storeStatus } from '../../service/commands/slashing-store.ts';

const ROOT = join(import.meta.dirname, '../..');
const PROGRAMS = [
  'bin',
  'ceremony',
  'demo',
  'eif',
  'operator',
  'parent-proxy',
  'rehearsal',
  'service',
  'setup',
  'signer',
  'tools',
];
const TAKES_ONE_BY_ONE = /\bfor \(.*\bargv\b|\b(?:argv|rest)\.(?:shift|forEach|entries)\(/;

function filesWith(pattern: RegExp): string[] {
  return PROGRAMS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  ).filter((file) => pattern.test(readFileSync(join(ROOT, file), 'utf8')));
}

it('no program has a reader, a table of exit codes or a view of the process of its own', () => {
  // The signer's flags are a layer of its configuration, whose violations are told all at once.
  expect(filesWith(/\bparseArgs\b/)).toEqual(['service/config/flag-layer.ts']);
  expect(filesWith(TAKES_ONE_BY_ONE)).toEqual([
    // The options of another program, as picocli reads them there: `--name value` and `-lLEVEL`, lists given in parts.
    'service/web3signer/arguments.ts',
  ]);
  expect(filesWith(/^(?:export )?const EXIT = /m)).toEqual([]);
  expect(filesWith(/^ {2}readonly stdout: /m)).toEqual([]);
});

const CONFIG = { flags: { config: { placeholder: 'FILE', meaning: 'A file' } } } as const;
const MADE = command({ summary: 'Made here', ...CONFIG }, async (_words, _terminal: Printed) => {});
const SILENT = { stdout: { write: () => true }, stderr: { write: () => true } };

describe.each([
  [
    'slashing',
    (argv: readonly string[]) => storeStatus.run(argv, { ...SILENT, env: {} } as unknown as SlashingTerminal),
  ],
  ['a command of a program', (argv: readonly string[]) => MADE.run(argv, SILENT)],
])('%s', (_program, read) => {
  it.each([
    [['--config', 'a', '--config', 'b'], '--config is given more than once'],
    [['--conf', 'a'], 'there is no flag --conf'],
    [['--config='], '--config has no value'],
    [['--config', '--print'], '--config has no value'],
  ])('%j: %s', async (argv, words) => {
    const said: unknown = await attempt(() => read(argv));
    expect(said instanceof Error ? said.message : JSON.stringify(said)).toContain(words);
  });
});

async function attempt(run: () => unknown): Promise<unknown> {
  try {
    return await run();
  } catch (error) {
    return error;
  }
}
