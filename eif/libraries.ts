// The shared libraries of the image's programs, from the build host, at the same paths. They are part of what is
// measured; their digests are in pcrs.json.

import { existsSync } from 'node:fs';
import { ElfError, type ElfFile, readElf } from './elf.ts';
import type { Architecture } from './format/format.ts';
import { BuildError, readImageInput } from './inputs.ts';

export interface Library {
  readonly path: string;
  readonly data: Buffer;
}

/** Where the loaders of Debian and of Amazon Linux look by themselves, in their order. */
const SEARCHED: Readonly<Record<Architecture, readonly string[]>> = {
  x86_64: ['/lib/x86_64-linux-gnu', '/usr/lib/x86_64-linux-gnu', '/lib64', '/usr/lib64'],
  aarch64: ['/lib/aarch64-linux-gnu', '/usr/lib/aarch64-linux-gnu', '/lib64', '/usr/lib64', '/lib'],
};

const MAX_LIBRARIES = 64;

/**
 * @param programs by a name for errors: executables and addons
 * @throws BuildError when a library is not there, or a program is of another architecture or brings a search path
 */
export function findLibraries(programs: ReadonlyMap<string, Buffer>, architecture: Architecture): Library[] {
  const found = new Map<string, Library>();
  const wanted = [...programs].flatMap(([name, file]) => wantedBy(name, file, architecture));
  for (let next = wanted.shift(); next !== undefined; next = wanted.shift()) {
    const path = locate(next, architecture);
    if (found.has(path)) continue;
    const data = readImageInput(path, `a library that ${next.by} needs`);
    found.set(path, { path, data });
    if (found.size > MAX_LIBRARIES) throw new BuildError(`the image would need more than ${MAX_LIBRARIES} libraries`);
    wanted.push(...wantedBy(path, data, architecture));
  }
  return withLoaderOnce([...found.values()]);
}

interface Wanted {
  readonly name: string;
  readonly by: string;
}

function wantedBy(by: string, file: Buffer, architecture: Architecture): Wanted[] {
  const elf = parsed(by, file);
  if (elf.architecture !== architecture)
    throw new BuildError(`${by} is for ${elf.architecture}, the image for ${architecture}`);
  if (elf.hasSearchPath)
    throw new BuildError(`${by} has a search path of its own (RPATH), which an image does not serve`);
  const names = elf.interpreter === undefined ? elf.needed : [elf.interpreter, ...elf.needed];
  return names.map((name) => ({ name, by }));
}

function parsed(by: string, file: Buffer): ElfFile {
  try {
    return readElf(file);
  } catch (error) {
    if (error instanceof ElfError) throw new BuildError(`${by} cannot be used: ${error.message}`);
    throw error;
  }
}

function locate({ name, by }: Wanted, architecture: Architecture): string {
  if (name.startsWith('/')) return name;
  if (name.includes('/')) throw new BuildError(`${by} needs ${name}, which is no name of a library`);
  const path = SEARCHED[architecture].map((folder) => `${folder}/${name}`).find((candidate) => existsSync(candidate));
  if (path !== undefined) return path;
  throw new BuildError(`${by} needs ${name}, which this host does not have`, [
    `searched: ${SEARCHED[architecture].join(' ')}`,
    'install the package that has it (on Debian: libatomic1, libstdc++6, libgcc-s1, libc6)',
  ]);
}

/** The loader is asked for by its path and by its name: one file, which the loader itself knows under both. */
function withLoaderOnce(libraries: readonly Library[]): Library[] {
  const byName = new Map<string, Library>();
  for (const library of libraries) {
    const name = library.path.slice(library.path.lastIndexOf('/') + 1);
    const earlier = byName.get(name);
    if (earlier !== undefined && !earlier.data.equals(library.data))
      throw new BuildError(`this host has two different ${name}: ${earlier.path} and ${library.path}`);
    if (earlier === undefined) byName.set(name, library);
  }
  return [...byName.values()];
}
