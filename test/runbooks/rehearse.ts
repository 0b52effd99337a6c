// Runs the blocks of a page in one bash, in order, as a reader would who copies each into one terminal. A block that
// fails ends the rehearsal with the place in the page and what was said; so does a line that the page shows and the
// commands do not say, and a value of the reader that the world does not have.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { kill, tracked } from '../../rehearsal/signer.ts';
import { neededBy } from '../support/needs.ts';
import { LONGEST_WAIT_MS } from '../support/patience.ts';
import { skipWithout } from '../support/skip.ts';
import { type Block, blocksOf } from './page.ts';

export interface World {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  /** In place of the reader's own values, by the name of the variable. */
  readonly values: Readonly<Record<string, string>>;
  /** Why a signer of this world did not start, for whoever reads that a block failed. */
  trouble?(): string | undefined;
}

export interface Rehearsed {
  readonly block: Block;
  readonly output: string;
}

export interface RehearsalOptions {
  /** Before a block runs: what happens around the reader meanwhile. */
  readonly before?: (block: Block) => Promise<void>;
  /** Blocks of the page that are only looked at: as many as the test says, so that none is added unseen. */
  readonly elsewhere?: number;
}

const ROOT = join(import.meta.dirname, '../..');

/** @param page its path from the root of the project */
export async function rehearse(page: string, world: World, options: RehearsalOptions = {}): Promise<Rehearsed[]> {
  return rehearseBlocks(blocksOf(page, readFileSync(join(ROOT, page), 'utf8')), world, options);
}

/**
 * A section of a page that alerts lead to, after what stands in front of the first section.
 * @param section its anchor
 */
export async function rehearseSection(
  page: string,
  section: string,
  world: World,
  options: RehearsalOptions = {},
): Promise<Rehearsed[]> {
  const blocks = blocksOf(page, readFileSync(join(ROOT, page), 'utf8'));
  if (!blocks.some((block) => block.section === section)) throw new Error(`${page}#${section} has no commands`);
  return rehearseBlocks(
    blocks.filter((block) => block.section === undefined || block.section === section),
    world,
    options,
  );
}

/** @throws Error that names the block */
export async function rehearseBlocks(
  blocks: readonly Block[],
  world: World,
  { before = async () => undefined, elsewhere = 0 }: RehearsalOptions = {},
): Promise<Rehearsed[]> {
  const away = blocks.filter(({ kind }) => kind === 'elsewhere');
  if (away.length !== elsewhere) throw new Error(`${away.length} blocks are not run here, and not ${elsewhere}`);
  for (const block of blocks) checkSyntax(block);
  const here = blocks.filter(({ kind }) => kind !== 'elsewhere');
  skipWithout(...neededBy(here.map(({ commands }) => commands).join('\n')));
  const shell = startShell(world);
  try {
    const rehearsed: Rehearsed[] = [];
    for (const block of here) {
      await before(block);
      const output = await shell.run({ ...block, commands: commandsOf(block, world) });
      demandShown(block, output);
      rehearsed.push({ block, output });
    }
    return rehearsed;
  } finally {
    await shell.end();
  }
}

function checkSyntax({ page, line, commands }: Block): void {
  const { status, stderr } = spawnSync('bash', ['-n'], { input: commands, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${page}:${line}: no bash: ${stderr}`);
}

const ASSIGNMENT = /^(export )?([A-Z_]+)=/;

/** The world's values for the reader's own. */
function commandsOf({ page, line, kind, commands }: Block, { values }: World): string {
  if (kind !== 'yours') return commands;
  return commands
    .split('\n')
    .map((text) => {
      if (text.trim() === '' || text.startsWith('#')) return text;
      const [, exported = '', name = ''] = ASSIGNMENT.exec(text) ?? [];
      const value = values[name];
      if (value === undefined) throw new Error(`${page}:${line}: this world has no value for: ${text}`);
      return `${exported}${name}='${value}'`;
    })
    .join('\n');
}

/** Each line of the page is in the output, after the one before; `…` stands for anything, blanks for any blanks. */
function demandShown({ page, line, shown }: Block, output: string): void {
  const said = output.split('\n');
  let from = 0;
  for (const text of shown) {
    const parts = text
      .trim()
      .split('…')
      .map((part) => part.split(/\s+/).map(escaped).join('\\s+'));
    const pattern = new RegExp(`^\\s*${parts.join('.*')}\\s*$`);
    const at = said.findIndex((candidate, index) => index >= from && pattern.test(candidate));
    if (at === -1) throw new Error(`${page}:${line}: the page shows “${text.trim()}”; it said:\n${output}`);
    from = at + 1;
  }
}

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

interface Shell {
  run(block: Block): Promise<string>;
  end(): Promise<void>;
}

/** A loop that waits for what a missing program would say waits for ever. */
const NO_SUCH_PROGRAM = `command_not_found_handle() { echo "$1: there is no such program here"; kill -KILL $$; }`;

/**
 * One bash for all blocks: what one sets the next has. It ends at the first command that fails, and says on its third
 * descriptor that a block is through.
 */
function startShell({ folder, env, trouble }: World): Shell {
  const outputs = mkdtempSync(join(tmpdir(), 'strongroom-runbook-'));
  const child = tracked(
    spawn('bash', ['--noprofile', '--norc'], { cwd: folder, env, stdio: ['pipe', 'pipe', 'pipe', 'pipe'] }),
  );
  child.stdin?.on('error', () => undefined); // it has ended, which is told below
  child.stdin?.write(`${NO_SUCH_PROGRAM}\n`);
  let stray = '';
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (stray += text));
  let count = 0;
  return {
    async run(block) {
      count += 1;
      const file = join(outputs, String(count));
      child.stdin?.write(scriptOf(block, file));
      const outcome = await outcomeOf(child);
      const output = existsSync(file) ? readFileSync(file, 'utf8') : '';
      if (outcome === 'through') return output;
      const { page, line, commands } = block;
      throw new Error(`${page}:${line}: ${outcome}\n${commands}\nIt said:\n${output}${stray}${trouble?.() ?? ''}`);
    },
    async end() {
      await kill(child);
      rmSync(outputs, { recursive: true, force: true });
    },
  };
}

/** What bash ends with when the last command of a block did not fail that has to. */
const DID_NOT_FAIL = 99;

function scriptOf({ kind, commands }: Block, file: string): string {
  const options = 'set -eu -o pipefail';
  const body = kind === 'fails' ? `if (\n${commands}\n); then exit ${DID_NOT_FAIL}; fi` : commands;
  return `${options}\n{\n${body}\n} </dev/null >'${file}' 2>&1\necho through >&3\n`;
}

async function outcomeOf(child: ChildProcess): Promise<string> {
  const ending = new AbortController();
  const { signal } = ending;
  const said = child.stdio[3];
  if (said === null || said === undefined) throw new Error('bash has a third descriptor');
  // Only so that a block which waits for ever is named.
  const timer = setTimeout(() => ending.abort(), LONGEST_WAIT_MS);
  try {
    return await Promise.race([
      once(said, 'data', { signal }).then(() => 'through'),
      once(child, 'exit', { signal }).then(([code, killed]) =>
        code === DID_NOT_FAIL ? 'it has to fail, and did not' : `exit code ${code ?? killed}`,
      ),
    ]);
  } catch {
    return `not through after ${LONGEST_WAIT_MS / 1000} s`;
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
}
