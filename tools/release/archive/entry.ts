// What lies in an archive of a release, whatever its format. Paths are relative and written in one way
// (eif/format/archive-path.ts); owners are numbers, because names belong to the machine that unpacks.

import { parentsOf, pathProblem } from '../../../eif/format/archive-path.ts';
import { BuildError } from '../../../eif/inputs.ts';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** `mode`: the permission bits. The owner is root where none is named. */
export type ArchiveEntry =
  | { readonly type: 'directory'; readonly path: string; readonly mode?: number; readonly owner?: Owner }
  | {
      readonly type: 'file';
      readonly path: string;
      readonly data: Buffer;
      readonly mode?: number;
      readonly owner?: Owner;
    }
  | { readonly type: 'symlink'; readonly path: string; readonly target: string };

export const DEFAULT_MODE = { file: 0o644, symlink: 0o777, directory: 0o755 } as const;

export function file(path: string, contents: Buffer | string, mode = 0o644): ArchiveEntry {
  return { type: 'file', path, data: Buffer.from(contents), mode };
}

export function beneath(folder: string, entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  return entries.map((entry) => ({ ...entry, path: `${folder}/${entry.path}` }));
}

/** Sorted by the bytes of their paths, with the folders above them. @throws BuildError for an unsafe path */
export function completed(entries: readonly ArchiveEntry[]): ArchiveEntry[] {
  const byPath = new Map<string, ArchiveEntry>();
  for (const entry of entries) {
    const problem = pathProblem(entry.path);
    if (problem !== undefined) throw new BuildError(`the path ${JSON.stringify(entry.path)} ${problem}`);
    if (byPath.has(entry.path)) throw new BuildError(`${entry.path} is there twice`);
    byPath.set(entry.path, entry);
  }
  for (const path of [...byPath.keys()].flatMap(parentsOf)) {
    const parent = byPath.get(path) ?? { type: 'directory', path };
    if (parent.type !== 'directory') throw new BuildError(`${path} has entries beneath it and is no folder`);
    byPath.set(path, parent);
  }
  return [...byPath.values()].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
}
