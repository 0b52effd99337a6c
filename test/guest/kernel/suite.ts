// Suite "kernel": what comes of the options in eif/kernel, as the kernel's own Kconfig resolves them over its defaults.
// An option that Kconfig does not know, or whose dependencies are missing, is dropped without a word: only the
// resulting configuration says what an enclave would run.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { cached, cacheRoot } from '../cache.ts';
import { type NewerDebian, openNewerDebian } from '../newer-debian.ts';
import { createChecks } from '../outside-checks.ts';
import type { OutsideSuite } from '../suite.ts';
import { requirePackages, run } from '../tools.ts';
import { ARCHITECTURES, type KernelArchitecture, NEEDED, UNWANTED } from './rules.ts';

const BUILD_PACKAGES = ['build-essential', 'flex', 'bison', 'xz-utils'];
/** All of the source that Kconfig reads, of 1.6 GB. */
const KCONFIG_FILES = ['Kconfig*', '*/scripts/*', '*/arch/x86/Makefile*', '*/arch/arm64/Makefile*'];
/** Seconds on a machine that does nothing else. */
const LIMIT_MS = 10 * 60_000;

export const kernelSuite: OutsideSuite = {
  name: 'kernel',
  async run(_folder, show) {
    requirePackages(BUILD_PACKAGES);
    const source = kconfigOf(openNewerDebian(join(cacheRoot(), 'debian')));
    const { check, tally } = createChecks(show);
    for (const architecture of ARCHITECTURES) {
      const fragment = fragmentOf(architecture);
      const resolved = resolve(source, architecture, fragment);
      const on = (line: string): boolean => resolved.has(line);
      await check(
        `${architecture.name}: every option of the fragments is in the configuration that comes of them`,
        () => {
          const dropped = fragment.filter((line) => !on(line) && !architecture.compilerLacks(line, on));
          assert.deepEqual(
            dropped.filter((line) => !isOff(line, resolved)),
            [],
          );
        },
      );
      await check(`${architecture.name}: no mitigation that this kernel knows is off`, () => {
        const off = [...resolved].filter((line) => architecture.mitigationThatIsOff.test(line));
        assert.deepEqual(off, []);
      });
      await check(`${architecture.name}: what an enclave needs is built in, and what it must not have is not`, () => {
        const missing = [...NEEDED, ...architecture.needed].filter((name) => !on(`CONFIG_${name}=y`));
        const there = UNWANTED.filter((name) => on(`CONFIG_${name}=y`) || on(`CONFIG_${name}=m`));
        assert.deepEqual({ missing, there }, { missing: [], there: [] });
        assert.deepEqual(
          [...resolved].filter((line) => line.endsWith('=m')),
          [],
          'a kernel without modules has none',
        );
      });
    }
    return tally;
  },
};

/** An option that depends on one that is off is not in the configuration at all. */
function isOff(line: string, resolved: ReadonlySet<string>): boolean {
  const name = /^# (CONFIG_\w+) is not set$/.exec(line)?.[1];
  return name !== undefined && !resolved.has(`${name}=y`) && !resolved.has(`${name}=m`);
}

function kconfigOf(debian: NewerDebian): string {
  const name = debian.dependencyOf('linux-source', /Depends: (linux-source-\S+)/);
  const folder = cached('kconfig', [name, debian.packageVersion(name), ...KCONFIG_FILES], (into) => {
    debian.unpack(name, join(into, 'package'));
    const archive = join(into, 'package/root/usr/src', `${name}.tar.xz`);
    const files = [`${name}/Makefile`, `${name}/Kbuild`, ...KCONFIG_FILES];
    run('tar', ['-xf', archive, '-C', into, '--wildcards', '--no-anchored', ...files], { timeoutMs: LIMIT_MS });
    rmSync(join(into, 'package'), { recursive: true });
  });
  return join(folder, name);
}

function fragmentOf({ name }: KernelArchitecture): readonly string[] {
  const read = (file: string): string => readFileSync(join(PROJECT_ROOT, 'eif/kernel', `${file}.fragment`), 'utf8');
  return `${read('common')}${read(name)}`.split('\n').filter((line) => /^(# )?CONFIG_/.test(line));
}

function resolve(source: string, { kernelName }: KernelArchitecture, fragment: readonly string[]): ReadonlySet<string> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-kconfig-'));
  try {
    const wanted = join(folder, 'wanted');
    writeFileSync(wanted, `${fragment.join('\n')}\n`);
    const settings = [`O=${folder}`, `ARCH=${kernelName}`, `KCONFIG_ALLCONFIG=${wanted}`];
    run('make', ['-s', '-j', String(availableParallelism()), '-C', source, ...settings, 'alldefconfig'], {
      timeoutMs: LIMIT_MS,
    });
    return new Set(readFileSync(join(folder, '.config'), 'utf8').split('\n'));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
