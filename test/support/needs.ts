// What a test needs that not every machine has: a command or a module of Python (needs.txt lists them with Debian's
// packages), or to be root. A test without it is skipped, and a visible message names what is missing. With
// REQUIRE_VECTORS=1, as in CI, a missing command fails instead; what Debian does not have, and root, never does.

import { spawnSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const PYTHON = 'python3:';
/** The one of the PATH, then the system's, which has Debian's packages. */
const PYTHONS = ['python3', '/usr/bin/python3'];
/** What a machine or a user is, and no package gives. */
const CONDITIONS: Readonly<Record<string, () => boolean>> = {
  Linux: () => process.platform === 'linux',
  root: () => process.getuid?.() === 0,
};

/** Debian's packages of every need. */
export const NEEDS: ReadonlyMap<string, readonly string[]> = new Map(
  readFileSync(join(import.meta.dirname, 'needs.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [name = '', packages = '-'] = line.split(/\s+/);
      return [name, packages === '-' ? [] : packages.split(',')];
    }),
);

/** @returns why what needs these is skipped here, which was said; undefined when all are there */
export function lacking(...needs: readonly string[]): string | undefined {
  const first = needs.find((need) => !isThere(need));
  if (first === undefined) return undefined;
  if (first === 'root') noteForRoot();
  const packages = NEEDS.get(first) ?? [];
  if (packages.length === 0) return skipped(first);
  const missing = `${first} (Debian: apt-get install ${packages.join(' ')})`;
  if (process.env['REQUIRE_VECTORS'] === '1') throw new Error(`missing: ${missing}`);
  return skipped(missing);
}

/** @returns why nothing can be mounted in a namespace of its own here, which was said; undefined when it can */
export function noMounts(): string | undefined {
  const lacks = lacking('Linux', 'root', 'unshare');
  const probe = ['--mount', 'sh', '-c', 'mount --make-rprivate / && mount -t tmpfs none /mnt'];
  if (lacks !== undefined || spawnSync('unshare', probe).status === 0) return lacks;
  return skipped('a kernel that lets root mount');
}

/** Says that something is skipped, and why. @returns the same */
export function skipped(missing: string): string {
  const why = `SKIPPED: needs ${missing}`;
  console.warn(why);
  return why;
}

/** @returns the commands of the list that a script calls */
export function neededBy(script: string): string[] {
  const called = /(?<=(?:^|[|;(&!]|\b(?:do|then|if|until|while|sudo)\b)[ \t]*)\b[a-z][\w.-]*/gm;
  const words = new Set([...script.matchAll(called)].map(([word]) => word));
  return [...NEEDS.keys()].filter((need) => words.has(need));
}

/** @returns the Python that has a module; undefined where the tests with it are skipped */
export function findPython(module: string): string | undefined {
  return lacking(`${PYTHON}${module}`) === undefined ? pythonWith(module) : undefined;
}

function isThere(need: string): boolean {
  const condition = CONDITIONS[need];
  if (condition !== undefined) return condition();
  if (!NEEDS.has(need)) throw new Error(`${need} is not in test/support/needs.txt: add it, with Debian's package`);
  if (need.startsWith(PYTHON)) return pythonWith(need.slice(PYTHON.length)) !== undefined;
  return spawnSync('sh', ['-c', 'command -v "$0"', need]).status === 0;
}

function pythonWith(module: string): string | undefined {
  return PYTHONS.find((python) => spawnSync(python, ['-c', `import ${module}`]).status === 0);
}

/** CI runs the suite as an ordinary user, and as root the files that are listed here (.ci/run). */
function noteForRoot(): void {
  const { NEEDS_ROOT_LIST: list = '', TEST_FILE: file = '' } = process.env;
  if (list !== '' && file !== '') appendFileSync(list, `${file}\n`);
}
