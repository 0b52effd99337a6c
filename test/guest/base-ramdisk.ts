// The part of the guest's file system that every guest test has: a shell, the kernel's modules, the Node.js that runs
// this, and the shared libraries it needs. What a test adds lies in ramdisks of its own, over this one.

import { readFileSync, realpathSync } from 'node:fs';
import type { CpioEntry } from '../../eif/format/cpio.ts';
import { modulesInOrder } from './modules.ts';
import type { GuestPackages } from './packages.ts';
import { GuestUnavailable, run } from './tools.ts';

/** Everything that is not where a program looks for it by itself is under /test. */
export const GUEST_PATHS = {
  node: 'bin/node',
  busybox: 'test/bin/busybox',
  modules: 'test/modules',
  /** The modules' file names, one a line, in the order of their insertion. */
  order: 'test/modules/order',
} as const;

/** vsock that loops back as CID 1, and devices served by programs. */
export const GUEST_MODULES = ['vsock_loopback', 'cuse'] as const;

const APPLETS = [
  ...[
    'awk',
    'cat',
    'chmod',
    'cp',
    'date',
    'dmesg',
    'echo',
    'env',
    'free',
    'grep',
    'head',
    'insmod',
    'ip',
    'kill',
    'ln',
    'ls',
    'lsmod',
  ],
  ...[
    'mkdir',
    'mknod',
    'mount',
    'nsenter',
    'poweroff',
    'ps',
    'reboot',
    'rm',
    'sed',
    'sh',
    'sleep',
    'tail',
    'touch',
    'tr',
    'umount',
    'unshare',
  ],
];
const MOUNT_POINTS = ['dev', 'proc', 'run', 'sys', 'tmp'];

export interface BaseOptions {
  /** Leave Node out: another ramdisk brings it. */
  readonly withoutNode?: boolean;
  readonly modules?: readonly string[];
}

/** @throws GuestUnavailable */
export function baseEntries(packages: GuestPackages, options: BaseOptions = {}): CpioEntry[] {
  const modules = modulesInOrder(packages.modules, options.modules ?? GUEST_MODULES);
  const order = modules.map(({ name }) => `${name}.ko\n`).join('');
  return [
    ...MOUNT_POINTS.map((path): CpioEntry => ({ type: 'directory', path })),
    { type: 'file', path: GUEST_PATHS.busybox, data: readFileSync(packages.busybox), mode: 0o755 },
    ...APPLETS.map((name): CpioEntry => ({ type: 'symlink', path: `test/bin/${name}`, target: 'busybox' })),
    ...modules.map(({ name, data }): CpioEntry => ({ type: 'file', path: `${GUEST_PATHS.modules}/${name}.ko`, data })),
    { type: 'file', path: GUEST_PATHS.order, data: Buffer.from(order) },
    ...(options.withoutNode ? [] : nodeEntries()),
  ];
}

/** This Node.js, and the libraries and the loader that it names, where it looks for them. */
function nodeEntries(): CpioEntry[] {
  const libraries = run('ldd', [process.execPath])
    .toString()
    .matchAll(/(?:=> )?(\/\S+) \(0x/g);
  const entries = Array.from(libraries, ([, path = '']) => executable(path.slice(1), realpathSync(path)));
  if (entries.length === 0) throw new GuestUnavailable(`ldd names no library of ${process.execPath}`);
  return [executable(GUEST_PATHS.node, process.execPath), ...entries];
}

function executable(path: string, source: string): CpioEntry {
  return { type: 'file', path, data: readFileSync(source), mode: 0o755 };
}
