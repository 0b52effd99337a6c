// Picks kernel modules out of an unpacked kernel package, with what they depend on, in the order in which they can be
// inserted. A package that was never installed has no modules.dep: each module says itself what it needs.

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { GuestUnavailable, run } from './tools.ts';

export interface KernelModule {
  /** As the kernel writes it: with underscores. */
  readonly name: string;
  /** Not compressed: insmod of busybox takes it. */
  readonly data: Buffer;
}

/** @param folder lib/modules/<version> @throws GuestUnavailable when there is no such module */
export function modulesInOrder(folder: string, names: readonly string[]): KernelModule[] {
  const files = findModules(folder);
  const ordered = new Map<string, KernelModule>();
  const add = (name: string): void => {
    if (ordered.has(name)) return;
    const path = files.get(name);
    if (path === undefined) throw new GuestUnavailable(`the guest's kernel has no module ${name}`);
    const data = readModule(path);
    for (const needed of dependenciesOf(data)) add(needed);
    ordered.set(name, { name, data });
  };
  for (const name of names) add(name);
  return [...ordered.values()];
}

function findModules(folder: string): Map<string, string> {
  const paths = readdirSync(join(folder, 'kernel'), { recursive: true, encoding: 'utf8' });
  return new Map(
    paths
      .filter((path) => /\.ko(\.xz|\.zst)?$/.test(path))
      .map((path) => [
        basename(path)
          .replace(/\.ko.*$/, '')
          .replaceAll('-', '_'),
        join(folder, 'kernel', path),
      ]),
  );
}

function readModule(path: string): Buffer {
  if (path.endsWith('.xz')) return run('xz', ['-dc', path]);
  const bytes = readFileSync(path);
  return path.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes;
}

/** The `depends` entry of its .modinfo: names with commas between, often none. */
function dependenciesOf(data: Buffer): string[] {
  const listed = /\0depends=([^\0]*)\0/.exec(data.toString('latin1'))?.[1] ?? '';
  return listed
    .split(',')
    .filter((name) => name !== '')
    .map((name) => name.replaceAll('-', '_'));
}
