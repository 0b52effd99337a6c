// What the front door promises (CONTRIBUTING.md): every target is listed, and the parts of `make test` run what they
// say. Nothing is run here but make itself, which only says what it would do.

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
/** Targets of the lab, which a checkout may lack. */
const OF_LAB = /^(?:bench|conformance|site|soak)\b/;
const HAS_LAB = existsSync(join(ROOT, 'lab'));
const FOLDERS = readdirSync(join(ROOT, 'test'));

/** Without what a make above hands down: `make test FILE=…` would give its FILE to this one too. */
function make(...parts: readonly string[]): string {
  const { MAKEFLAGS: _flags, MFLAGS: _old, MAKELEVEL: _level, FILE: _file, TEST_SCALE: _scale, ...env } = process.env;
  return execFileSync('make', ['--no-print-directory', ...parts], { cwd: ROOT, encoding: 'utf8', env });
}

/** For a make that calls another: `-o` is not handed down. */
const INSTALLS_NOTHING = 'MAKE=make -o install -o core';

describe('make', () => {
  it('lists every target in one column', () => {
    const lines = make('help').trimEnd().split('\n');
    const columns = lines.map((line) => /^ {2}make [a-z-]+ +/.exec(line)?.[0].length);
    expect(lines.length).toBeGreaterThan(15);
    expect(new Set(columns).size).toBe(1);
    expect(lines.some((line) => line.includes('make check-multiples '))).toBe(true);
  });

  it('lists what CONTRIBUTING.md and README.md have somebody type', () => {
    const listed = [...make('help').matchAll(/^ {2}make ([a-z-]+)/gm)].map(([, name]) => name);
    for (const page of ['CONTRIBUTING.md', 'README.md']) {
      const typed = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/(?:^|`)make ([a-z]+(?:-[a-z]+)*)/gm)];
      const names = new Set(typed.map(([, name = '']) => name).filter((name) => HAS_LAB || !OF_LAB.test(name)));
      expect([page, [...names].filter((name) => !listed.includes(name))]).toEqual([page, []]);
      expect(names.size).toBeGreaterThan(3);
    }
  });

  it('test takes a file', () => {
    expect(make('-n', 'test', 'FILE=test/auth').trimEnd()).toMatch(/vitest\.mjs run test\/auth$/);
    expect(make('-n', 'test').trimEnd()).toMatch(/vitest\.mjs run\s*$/);
  });

  it('test-all and CI run the same tests, at the whole size', () => {
    const scaleOf = (...parts: readonly string[]) =>
      make(...parts, 'VITEST=echo $$TEST_SCALE')
        .trimEnd()
        .split('\n')
        .at(-1);
    expect(scaleOf(INSTALLS_NOTHING, 'test-all')).toBe('1 run');
    expect(scaleOf(INSTALLS_NOTHING, 'test-all', 'TEST_SCALE=20')).toBe('20 run');
    const suites = readFileSync(join(ROOT, '.ci/run'), 'utf8').match(/\bmake (?:-C \S+ )?test\s.*/g) ?? [];
    // Where root does not run it; by an ordinary user; what needs root.
    expect(suites).toHaveLength(3);
    for (const suite of suites) expect(suite).toMatch(/test TEST_SCALE=1\b/);
  });

  it('test-fast leaves out folders and files that there are', () => {
    const command = make('-n', 'test-fast').trimEnd().split('\n').at(-1) ?? '';
    const excluded = [...command.matchAll(/--exclude '?((?:lab\/)?test\/[^\s']+)/g)].map(([, glob = '']) => glob);
    expect(excluded.length).toBeGreaterThan(4);
    for (const name of excluded.flatMap(namesIn)) expect([name, isThere(name)]).toEqual([name, true]);
    expect(FOLDERS).toContain('e2e');
  });
});

/** `test/{a,b}/**` names test/a and test/b. */
function namesIn(glob: string): string[] {
  const [, before = '', list, after = ''] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(glob) ?? [];
  const names = list === undefined ? [glob] : list.split(',').map((name) => before + name + after);
  return names.map((name) => name.replace(/\/\*\*$/, ''));
}

function isThere(name: string): boolean {
  const parts = name.split('/');
  const last = parts.pop() ?? '';
  return readdirSync(join(ROOT, ...parts)).includes(last);
}
