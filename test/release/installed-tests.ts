// What is installed is whole: the documents that the program's messages name, the pages that they link to, dashboard,
// alert rules, examples and verifiers, manual pages and completion scripts.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { expect, it } from 'vitest';
import { toldFlags, walkDescriptions } from '../../common/command-line/command.ts';
import { described } from '../../tools/release/absent/described.ts';
import { deploymentEntries } from '../../tools/release/tree.ts';
import { anchorsOf, withoutFences } from '../architecture/anchors.ts';
import { PROJECT_ROOT } from '../support/addon.ts';
import { lacking } from '../support/needs.ts';
import { filesIn, type MadeRelease } from './made-release.ts';

const NO_GROFF = lacking('groff');
const GIT = spawnSync('git', ['rev-parse', '--is-inside-work-tree'], { cwd: PROJECT_ROOT }).status === 0;
// Behind a slash, or with a folder in capitals, it is somebody else's.
const DOCUMENT =
  /(?<![\w./-])(?:docs|deploy|parent-proxy\/deploy)\/(?:[a-z-]+\/)*[\w.-]*\.(?:md|py|json|yaml|svg)(?:#[\w-]+)?/g;
const LINK = /\]\(([^()\s]+)\)/g;

/** Why a document, or a section of it, is not there; relative to the tree. */
function missing(tree: string, named: string): string[] {
  const [path = '', section] = named.split('#');
  if (!existsSync(join(tree, path))) return [`${named}: it is not in the release`];
  const isThere = section === undefined || anchorsOf(join(tree, path)).has(section);
  return isThere ? [] : [`${named}: it has no such section`];
}

export function installedTests(made: () => MadeRelease): void {
  const tree = (): string => made().tree;
  const pages = (): string[] => filesIn(tree()).filter((name) => name.endsWith('.md'));

  it('has every document that a message of the program names, also in the image', () => {
    const app = join(tree(), 'app');
    const code = readdirSync(app).map((name) => readFileSync(join(app, name), 'latin1'));
    const named = new Set(code.flatMap((text) => text.match(DOCUMENT) ?? []));
    expect(named.size).toBeGreaterThan(20);
    for (const installed of [tree(), join(made().image.root, 'opt/strongroom')])
      expect([...named].flatMap((one) => missing(installed, one))).toEqual([]);
    expect(missing(tree(), 'docs/guides/nowhere.yaml')).toHaveLength(1);
    expect(missing(tree(), `docs/${'README'}.md#nowhere`)).toHaveLength(1);
  });

  it('has pages whose links lead to what is there', () => {
    const dead = pages().flatMap((page) => {
      const prose = withoutFences(readFileSync(join(tree(), page), 'utf8')).replaceAll(/`[^`\n]*`(?!\])/g, '');
      const targets = [...prose.matchAll(LINK)].map(([, target = '']) => target);
      const own = targets.filter((target) => !/^(?:[a-z]+:|#)/.test(target));
      return own.flatMap((target) => missing(tree(), normalize(join(dirname(page), target))));
    });
    expect(pages().length).toBeGreaterThan(60);
    expect(dead).toEqual([]);
  });

  it('has the runbook of every alert, the rules themselves and the dashboard', () => {
    const rules = readFileSync(join(tree(), 'deploy/prometheus/strongroom.rules.yaml'), 'utf8');
    const runbooks = [...rules.matchAll(/runbook_url: (\S+)/g)].map(([, url = '']) => url);
    expect(runbooks.length).toBeGreaterThan(20);
    expect(runbooks.flatMap((url) => missing(tree(), url))).toEqual([]);
    expect(existsSync(join(tree(), 'deploy/grafana/strongroom.json'))).toBe(true);
  });

  it.runIf(GIT)('has the documents and the deployments of git, and nothing that lies there besides', () => {
    const folders = ['docs', 'deploy', 'parent-proxy/deploy'];
    const tracked = execFileSync('git', ['ls-files', ...folders], { cwd: PROJECT_ROOT, encoding: 'utf8' });
    const known = tracked.split('\n').filter((path) => path !== '' && !path.endsWith('.gitignore'));
    const taken = deploymentEntries(PROJECT_ROOT, new Map()).map(({ path }) => path);
    expect(taken.filter((path) => folders.some((folder) => path.startsWith(`${folder}/`))).sort()).toEqual(
      known.sort(),
    );
  });

  it('has a manual page for each program, with every command and every option', async () => {
    const everything = await described();
    const folder = join(tree(), 'share/man/man1');
    const programs = Object.keys(everything.commands ?? {});
    const names = ['strongroom', ...programs.map((program) => `strongroom-${program}`)].map((name) => `${name}.1`);
    expect(readdirSync(folder).sort()).toEqual(names.sort());
    for (const program of programs) {
      const page = readFileSync(join(folder, `strongroom-${program}.1`), 'utf8').replaceAll('\\-', '-');
      const found = [...walkDescriptions(everything.commands?.[program] ?? everything, [program])];
      const words = found.flatMap(({ path, description }) => [
        ...(description.commands === undefined && path.length > 1 ? [`.SS ${path.slice(1).join(' ')}\n`] : []),
        ...Object.keys(toldFlags(description)).map((flag) => `--${flag}`),
      ]);
      expect({ program, lacks: words.filter((word) => !page.includes(word)) }).toEqual({ program, lacks: [] });
    }
    if (NO_GROFF !== undefined) return;
    for (const name of names) {
      // Bold is not written as letters over letters.
      const argv = ['-K', 'utf8', '-man', '-ww', '-T', 'utf8', ...['-P-c', '-P-b', '-P-u', '-P-o'], join(folder, name)];
      const { status, stderr, stdout } = spawnSync('groff', argv, { encoding: 'utf8' });
      expect({ name, status, stderr }).toEqual({ name, status: 0, stderr: '' });
      expect(stdout).toContain('SYNOPSIS');
    }
  });

  it.each([
    ['bash', 'share/bash-completion/completions/strongroom'],
    ['zsh', 'share/zsh/vendor-completions/_strongroom'],
    ['fish', 'share/fish/vendor_completions.d/strongroom.fish'],
  ])('has the completion script that it prints for %s', (shell, path) => {
    const printed = execFileSync(join(tree(), 'bin/strongroom'), ['completion', shell], { encoding: 'utf8' });
    expect(readFileSync(join(tree(), path), 'utf8')).toBe(printed);
  });
}
