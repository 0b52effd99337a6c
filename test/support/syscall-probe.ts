// Builds the probe for system calls (syscall-probe.c) into a folder of the caller's.

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { PROJECT_ROOT } from './addon.ts';

export interface SyscallProbe {
  readonly numbers: Readonly<Record<string, number>>;
  /** @returns 0, or an errno. Arguments that are not given are all ones. */
  systemCall(number: number, ...firstArguments: readonly number[]): number;
  foreignCall(): void;
}

/** @returns where it lies; only a process that is there to be filtered loads it */
export function buildSyscallProbe(folder: string): string {
  const path = join(folder, 'syscall-probe.node');
  const source = join(PROJECT_ROOT, 'test/support/syscall-probe.c');
  const headers = join(PROJECT_ROOT, 'node_modules/node-api-headers/include');
  const flags = ['-std=c11', '-D_GNU_SOURCE', '-O1', '-fPIC', '-shared', '-Wall', '-Wextra', '-Werror'];
  execFileSync('cc', [...flags, '-isystem', headers, source, '-o', path]);
  return path;
}
