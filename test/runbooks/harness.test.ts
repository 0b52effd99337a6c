// What the rehearsal of a page finds, and what it refuses: a page that is wrong must not pass. And of every runbook:
// its form, and that some test here rehearses it.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runStrongroom } from '../../rehearsal/signer.ts';
import { neededBy } from '../support/needs.ts';
import { blocksOf } from './page.ts';
import { Refused } from './programs.ts';
import { type RehearsalOptions, rehearseBlocks } from './rehearse.ts';
import { type OpenWorld, openWorld, ROOT } from './world.ts';

let folder: string;
let world: OpenWorld;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sr-'));
  const ssh = async (args: readonly string[]): Promise<string> => {
    if (args[0] === 'nobody') throw new Refused('ssh: no such host', 7);
    return `${args.join('|')}\n`;
  };
  world = await openWorld({ folder, env: {}, values: { NAME: 'of this world' }, programs: { ssh } });
});
afterAll(async () => {
  await world?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A page of these fences, each `info`, then its text. */
function pageOf(...fences: readonly (readonly [string, string])[]): string {
  return fences.map(([info, text]) => `\`\`\`${info}\n${text}\n\`\`\`\n`).join('\n');
}

const rehearsed = (markdown: string, options: RehearsalOptions = {}) =>
  rehearseBlocks(blocksOf('a page', markdown), world, options);

describe('a rehearsal', () => {
  it('runs all blocks in one shell, with the values of the world, in order', async () => {
    const page = pageOf(
      ['sh yours', 'export NAME="yours"   # a comment'],
      ['sh', 'value=1; echo "$NAME"'],
      ['text', 'of   this…'],
      ['sh', 'cat | wc -c; echo "$value" >&2'],
      ['text', '0\n1'],
    );
    const outputs = (await rehearsed(page)).map(({ output }) => output.trim());
    expect(outputs).toEqual(['', 'of this world', '0\n1']);
  });

  it('gives programs that are not here their arguments as they are, and their exit code', async () => {
    const page = pageOf(['sh', `ssh host 'two words' "a&b=ü" ""; ssh nobody x || echo "code $?"`]);
    const [first] = await rehearsed(page);
    expect(first?.output).toBe('host|two words|a&b=ü|\nssh: no such host\ncode 7\n');
  });

  it('demands that a block fails which is marked so', async () => {
    await rehearsed(pageOf(['sh fails', 'echo x\nfalse'], ['text', 'x']));
    await expect(rehearsed(pageOf(['sh fails', 'true']))).rejects.toThrow('it has to fail, and did not');
  });

  it.each([
    ['a command that fails', [['sh', 'true\nfalse\ntrue']], /a page:1: exit code 1/],
    ['one in front of a pipe', [['sh', 'false | cat']], /exit code 1/],
    ['a variable that is not set', [['sh', 'echo "$NOT_SET"']], /NOT_SET: unbound variable/],
    ['a program that nobody has', [['sh', 'stronghouse']], /stronghouse: there is no such program here/],
    ['one in a loop that waits for it', [['sh', 'until true | stronghouse; do sleep 1; done']], /no such program here/],
    ['one in what has to fail', [['sh fails', 'stronghouse']], /no such program here/],
    [
      'a line that was not said',
      [
        ['sh', 'echo a b'],
        ['text', 'a c'],
      ],
      /the page shows “a c”; it said:\na b/,
    ],
    [
      'lines in another order',
      [
        ['sh', 'echo a; echo b'],
        ['text', 'b\na'],
      ],
      /the page shows “a”/,
    ],
    [
      'half of a line',
      [
        ['sh', 'echo a b'],
        ['text', 'a'],
      ],
      /the page shows “a”/,
    ],
    ['a value that the world does not have', [['sh yours', 'OTHER=1']], /no value for: OTHER=1/],
    ['what is no value among the values', [['sh yours', 'rm -r x']], /no value for: rm/],
    ['no bash', [['sh', 'if true; then']], /a page:1: no bash/],
    ['a block that is not run, unless the test knows', [['sh elsewhere', 'make']], /1 blocks are not run here/],
  ] as const)('notices %s', async (_what, fences, message) => {
    await expect(rehearsed(pageOf(...fences))).rejects.toThrow(message);
  });

  it.each([
    [['', 'true'], /a fence is/],
    [['bash', 'true'], /a fence is/],
    [['sh later', 'true'], /nobody knows the mark/],
    [['sh fails yours', 'true'], /nobody knows the mark/],
    [['sh', 'aws kms list-keys'], /mark it/],
    [['sh aws', 'true'], /calls no aws/],
  ] as const)('refuses the fence %j', (fence, message) => {
    expect(() => blocksOf('a page', pageOf(fence))).toThrow(message);
  });

  it('takes the indent of a list away, and leaves text that follows on words alone', () => {
    const [block] = blocksOf(
      'a page',
      '1. Do\n\n   ```sh\n   a\n     b\n   ```\n\n   Later:\n\n   ```text\n   c\n   ```\n',
    );
    expect(block).toMatchObject({ line: 3, commands: 'a\n  b\n', shown: [] });
  });
});

describe('every runbook', () => {
  const pages = readdirSync(join(ROOT, 'docs/runbooks')).map((name) => `docs/runbooks/${name}`);
  const tests = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith('.test.ts') && name !== 'harness.test.ts')
    .map((name) => readFileSync(join(import.meta.dirname, name), 'utf8'));
  const textOf = (page: string): string => readFileSync(join(ROOT, page), 'utf8');
  const isRehearsed = (page: string): boolean => tests.some((text) => text.includes(`rehearse('${page}'`));
  /** Pages of alerts, which are followed by section: their test has the page's path, and `follow('ANCHOR'`. */
  const ofAlerts = pages.filter((page) => tests.some((text) => text.includes(`'${page}';`)));
  const SECTION = /^<a id="([^"]+)"><\/a>\n## .*\n([\s\S]*?)(?=^<a id="|(?![\s\S]))/gm;
  const sections = ofAlerts.flatMap((page) =>
    [...textOf(page).matchAll(SECTION)].map(([, anchor = '', text = '']) => ({ page, anchor, text })),
  );

  it('is rehearsed as a whole, or by the sections that alerts lead to', () => {
    expect(pages.filter((page) => !isRehearsed(page) && !ofAlerts.includes(page))).toEqual([]);
    expect(sections.length).toBeGreaterThan(25);
    const followed = ({ page, anchor }: { page: string; anchor: string }): boolean =>
      tests.some(
        (text) =>
          (text.includes(`'${page}'`) && text.includes(`follow('${anchor}'`)) ||
          new RegExp(`rehearseSection\\(\\s*'${page}',\\s*'${anchor}'`).test(text),
      );
    const blocks = ofAlerts.flatMap((page) => blocksOf(page, textOf(page)));
    const kindsOf = ({ page, anchor }: { page: string; anchor: string }): string[] =>
      blocks.filter((block) => block.page === page && block.section === anchor).map(({ kind }) => kind);
    const silent = sections.filter((section) => kindsOf(section).length === 0);
    expect(silent.map(({ page, anchor }) => `${page}#${anchor} has no commands`)).toEqual([]);
    const toFollow = sections.filter((section) => kindsOf(section).some((kind) => kind !== 'elsewhere'));
    const lost = toFollow.filter((section) => !followed(section));
    expect(lost.map(({ page, anchor }) => `${page}#${anchor}`)).toEqual([]);
  });

  it.each(ofAlerts)('%s: each section goes from its symptoms to its end', (page) => {
    const own = sections.filter((section) => section.page === page);
    expect(own.length).toBeGreaterThan(1);
    for (const { anchor, text } of own) {
      const parts = [...text.matchAll(/^\*\*(Symptoms|Check|Do|Never|It is over when)\b/gm)].map(([, part]) => part);
      const wanted = ['Symptoms', 'Check', 'Do', ...(parts.includes('Never') ? ['Never'] : []), 'It is over when'];
      expect({ anchor, parts }).toEqual({ anchor, parts: wanted });
    }
  });

  it.each(pages.filter(isRehearsed))('%s has its sections', (page) => {
    const markdown = readFileSync(join(ROOT, page), 'utf8');
    expect(blocksOf(page, markdown).filter(({ kind }) => kind === 'run').length).toBeGreaterThan(0);
    expect(markdown).toMatch(/^\*\*When\.\*\* /m);
    const headings = [...markdown.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
    const wanted = ['What you need', 'Steps', 'Never', 'It is over when'];
    expect(headings.filter((heading) => wanted.includes(String(heading)))).toEqual(wanted);
  });

  it.each(pages)('%s: “What you need” names the programs that a bare machine does not have', (page) => {
    const [, section = ''] = /^## What you need\n([\s\S]*?)(?=^## |^<a id=)/m.exec(textOf(page)) ?? [];
    const programs = neededBy(
      blocksOf(page, textOf(page))
        .map(({ commands }) => commands)
        .join('\n'),
    );
    expect(programs.filter((program) => !section.includes(`\`${program}\``))).toEqual([]);
  });

  it('states no command or flag of strongroom that is not there, where it is not run', async () => {
    const away = pages
      .filter(isRehearsed)
      .flatMap((page) => blocksOf(page, readFileSync(join(ROOT, page), 'utf8')))
      .filter(({ kind }) => kind === 'elsewhere');
    const commands = away.flatMap(({ commands }) => commands.replaceAll('\\\n', '').match(/^strongroom .*$/gm) ?? []);
    expect(commands.length).toBeGreaterThan(2);
    for (const command of new Set(commands)) {
      const words = /^strongroom ((?:[a-z]+ )+)/.exec(command)?.[1]?.trim().split(' ') ?? [];
      const { code, stdout } = await runStrongroom([...words, '--help']);
      const flags = [...command.matchAll(/ (--?[a-z][a-z-]*)/g)].map(([, flag = '']) => flag);
      const unknown = flags.filter((flag) => !new RegExp(`(?:^|[\\s,[])${flag}\\b`, 'm').test(stdout));
      expect({ command, code, unknown }).toEqual({ command, code: 0, unknown: [] });
    }
  });
});
