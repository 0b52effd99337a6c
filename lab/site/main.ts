// `make site`: the documentation as a site in build/site, which needs no other host. VitePress is installed for it
// alone, into build/, by the lockfile of lab/; nothing of the product imports it. A link that leads nowhere
// ends it. `serve` shows the site on this machine, since a browser runs no modules from files.

import { spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isCopied } from './config.ts';
import { problemsOf } from './links.ts';

const ROOT = join(import.meta.dirname, '../..');
const GENERATOR = join(ROOT, 'build/site-generator');
const SITE = join(ROOT, 'build/site');
const LAB = join(ROOT, 'lab');
const LOCKFILE = 'package-lock.json';

install();
lay();
run(process.execPath, [join(GENERATOR, 'node_modules/vitepress/bin/vitepress.js'), 'build', GENERATOR]);
const files = copyFiles();
const problems = problemsOf(SITE);
if (problems.length > 0) {
  process.stderr.write(`make site: ${problems.length} links are wrong:\n${problems.join('\n')}\n`);
  process.exit(1);
}
const pages = readdirSync(SITE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
process.stdout.write(`${pages.length} pages and ${files} files in build/site; every link leads somewhere\n`);
if (process.argv[2] === 'serve')
  run(process.execPath, [
    join(GENERATOR, 'node_modules/vite/bin/vite.js'),
    'preview',
    GENERATOR,
    '--outDir',
    SITE,
    '--host',
    '127.0.0.1',
  ]);

/** Again when the lockfile is another one. */
function install(): void {
  mkdirSync(GENERATOR, { recursive: true });
  const lockfile = readFileSync(join(LAB, LOCKFILE), 'utf8');
  const installed = join(GENERATOR, '.installed');
  if (existsSync(installed) && readFileSync(installed, 'utf8') === lockfile) return;
  for (const file of ['package.json', LOCKFILE]) copyFileSync(join(LAB, file), join(GENERATOR, file));
  copyFileSync(join(ROOT, '.npmrc'), join(GENERATOR, '.npmrc'));
  process.stdout.write('installing VitePress into build/site-generator\n');
  run(join(ROOT, 'tools/checkout/npm'), ['ci', '--loglevel=error', '--no-progress']);
  writeFileSync(installed, lockfile);
}

/** VitePress finds its packages from its own folder, so our part of it goes there. */
function lay(): void {
  for (const file of ['config.ts', 'navigation.ts'])
    copyFileSync(join(import.meta.dirname, file), join(GENERATOR, file));
  rmSync(join(GENERATOR, '.vitepress'), { recursive: true, force: true });
  cpSync(join(import.meta.dirname, 'vitepress'), join(GENERATOR, '.vitepress'), { recursive: true });
  rmSync(SITE, { recursive: true, force: true });
}

/** What pages link to and no page is. @returns how many */
function copyFiles(): number {
  const files = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.md'))
    .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length + 1))
    .filter(isCopied);
  for (const file of files) {
    mkdirSync(dirname(join(SITE, file)), { recursive: true });
    copyFileSync(join(ROOT, file), join(SITE, file));
  }
  return files.length;
}

function run(program: string, words: readonly string[]): void {
  const { status, error } = spawnSync(program, words, { cwd: GENERATOR, stdio: 'inherit' });
  if (status === 0) return;
  process.stderr.write(`make site: ${program} ${words[0]}: ${error?.message ?? `exit code ${status}`}\n`);
  process.exit(1);
}
