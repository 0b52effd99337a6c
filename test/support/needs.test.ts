// The list of what tests need is whole: README's packages are in it, and so is every name that a test asks for. A test
// that lacks something is skipped with its name.

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PROJECT_ROOT } from './addon.ts';
import { findPython, lacking, NEEDS, neededBy } from './needs.ts';

const README = readFileSync(join(PROJECT_ROOT, 'README.md'), 'utf8').replaceAll(/\s+/g, ' ');
const ALL_PACKAGES = new Set([...NEEDS.values()].flat());

let folder: string;
let warned: string[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-needs-'));
  warned = [];
  vi.spyOn(console, 'warn').mockImplementation((text: string) => void warned.push(text));
  vi.stubEnv('REQUIRE_VECTORS', '');
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** A PATH with a shell and these. */
function withOnly(...programs: readonly string[]): void {
  symlinkSync('/bin/sh', join(folder, 'sh'));
  for (const name of programs) writeFileSync(join(folder, name), '#!/bin/sh\n', { mode: 0o755 });
  vi.stubEnv('PATH', folder);
}

describe('a need', () => {
  it('that is there is not said', () => {
    withOnly('age', 'jq');
    expect(lacking('age', 'jq')).toBeUndefined();
    expect(warned).toEqual([]);
  });

  it('that is missing is named with Debian’s package', () => {
    withOnly('age');
    expect(lacking('age', 'ss')).toBe('SKIPPED: needs ss (Debian: apt-get install iproute2)');
    expect(warned).toEqual(['SKIPPED: needs ss (Debian: apt-get install iproute2)']);
  });

  it('that cannot be run is missing', () => {
    withOnly('age');
    chmodSync(join(folder, 'age'), 0o644);
    expect(lacking('age')).toContain('needs age');
  });

  it('that is missing fails under REQUIRE_VECTORS=1, where Debian has it', () => {
    withOnly();
    vi.stubEnv('REQUIRE_VECTORS', '1');
    expect(() => lacking('jq')).toThrow('missing: jq (Debian: apt-get install jq)');
    expect(() => findPython('no_such_module')).toThrow('python3:no_such_module is not in');
    expect(lacking('helm')).toBe('SKIPPED: needs helm');
  });

  it('that is not in the list is refused', () => {
    expect(() => lacking('stronghouse')).toThrow('stronghouse is not in test/support/needs.txt');
  });

  it('that only root meets is noted for the part of CI that root runs', () => {
    vi.spyOn(process, 'getuid').mockReturnValue(1000);
    vi.stubEnv('NEEDS_ROOT_LIST', join(folder, 'list'));
    expect(lacking('root', 'jq')).toBe('SKIPPED: needs root');
    expect(readFileSync(join(folder, 'list'), 'utf8')).toBe(`${import.meta.filename}\n`);
  });

  it('is found in a script where a command stands', () => {
    const script = 'a=$(age x | jq -e y)\nif ! ss -l; then echo zsh; fi\necho "strace"; sudo ip link';
    expect(neededBy(script)).toEqual(['age', 'ip', 'jq', 'ss']);
  });
});

describe('the list', () => {
  it('has the packages that README names, and only they are needed to begin', () => {
    const [, first = '', native = ''] = /run `apt-get install ([a-z0-9 -]+)`. Add `([a-z0-9 -]+)`/.exec(README) ?? [];
    expect(first.split(' ')).toContain('make');
    for (const name of [...first.split(' '), ...native.split(' ')]) expect(ALL_PACKAGES).toContain(name);
  });

  it('is what `make test-setup` prints, as one command', () => {
    const { status, stdout } = spawnSync('make', ['--no-print-directory', 'test-setup'], {
      cwd: PROJECT_ROOT,
      encoding: 'utf8',
    });
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: `apt-get install ${[...ALL_PACKAGES].sort().join(' ')}\n`,
    });
  });
});
