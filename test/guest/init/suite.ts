// Suite "init": the image's first process alone, in the first ramdisk as `strongroom eif build` lays it, with a small
// program in place of Node (stand-in-node.c). Once as the kernel starts it, with nothing but the kernel; once with a
// parent; then what ends a boot, case by case.

import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { INIT, readCompiledPart } from '../../../eif/bundle/compiled-parts.ts';
import { type CpioEntry, writeCpio } from '../../../eif/format/cpio.ts';
import { initRamdisk } from '../../../eif/ramdisks.ts';
import { PROJECT_ROOT } from '../../support/addon.ts';
import { baseEntries } from '../base-ramdisk.ts';
import { modulesInOrder } from '../modules.ts';
import type { GuestPackages } from '../packages.ts';
import type { GuestBoot, GuestSuite } from '../suite.ts';
import { run } from '../tools.ts';
import { ALONE, CASES, WITH_A_PARENT } from './rules.ts';

const HERE = import.meta.dirname;
/** What the image brings for its kernel: vsock, and one that nobody has loaded before. */
const IMAGE_MODULES = ['vsock_loopback', 'cuse'];
const PARENT = 'strongroom.parent_cid=1';

export const initSuite: GuestSuite = {
  name: 'init',
  async prepare(packages, folder) {
    const image = writeCpio(imageEntries(packages));
    const base = writeCpio(baseEntries(packages, { withoutNode: true }));
    const programs = writeCpio(programEntries(join(folder, 'init')));
    const boot = (name: string, rest: Omit<GuestBoot, 'memoryMiB' | 'withoutProgram'>): GuestBoot => {
      return { name, memoryMiB: 256, withoutProgram: true, ...rest };
    };
    return [
      boot('alone', { ramdisks: [image], cmdline: 'rdinit=/init', outside: ALONE }),
      boot('with-a-parent', {
        ramdisks: [image, base, programs],
        cmdline: `rdinit=/test/first ${PARENT}`,
        outside: WITH_A_PARENT,
      }),
      boot('cases', {
        ramdisks: [image, base, programs],
        cmdline: `rdinit=/test/cases ${PARENT}`,
        outside: CASES,
      }),
    ];
  },
};

function imageEntries(packages: GuestPackages): CpioEntry[] {
  execFileSync('make', ['-s', 'image-parts'], { cwd: PROJECT_ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const modules = modulesInOrder(packages.modules, IMAGE_MODULES);
  return initRamdisk({
    init: readCompiledPart(PROJECT_ROOT, INIT),
    modules: modules.map(({ name, data }) => ({ name: `${name}.ko`, data })),
  });
}

function programEntries(folder: string): CpioEntry[] {
  mkdirSync(folder, { recursive: true });
  const compiled = (name: string): Buffer => {
    const program = join(folder, name);
    run('cc', ['-std=gnu11', '-Os', '-static', '-Wall', '-Wextra', '-Werror', join(HERE, `${name}.c`), '-o', program]);
    return readFileSync(program);
  };
  return [
    executable('usr/bin/node', compiled('stand-in-node')),
    executable('test/heartbeats', compiled('heartbeats')),
    executable('test/first', readFileSync(join(HERE, 'first.sh'))),
    executable('test/cases', readFileSync(join(HERE, 'cases.sh'))),
    // The shell gives it to what it starts in the background, when nothing is mounted yet.
    { type: 'character-device', path: 'dev/null', major: 1, minor: 3 },
    { type: 'file', path: 'test/end', data: Buffer.from('exit 7\n') },
  ];
}

function executable(path: string, data: Buffer): CpioEntry {
  return { type: 'file', path, data, mode: 0o755 };
}
