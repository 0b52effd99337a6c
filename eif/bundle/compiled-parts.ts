// The parts of an image that a C compiler makes (`make image-parts`): the addon and the first process. One that is
// missing, older than its sources, or not what they compile to, stops the build: an image must not have the addon of an
// earlier version of the program, nor one that others put there.

import { execFile } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { BuildError, readImageInput } from '../inputs.ts';
import { ADDON_SOURCE } from './locations.ts';

export interface CompiledPart {
  readonly path: string;
  readonly sources: string;
  readonly what: string;
  /** The target of make that compiles it; `image-parts` where none is named. */
  readonly target?: string;
}

export const ADDON: CompiledPart = { path: ADDON_SOURCE, sources: 'signer/native', what: 'the native addon' };
export const INIT: CompiledPart = { path: 'build/eif/init', sources: 'eif/init', what: 'the first process' };

export function readCompiledPart(root: string, { path, sources, what, target = 'image-parts' }: CompiledPart): Buffer {
  const remedy = `build it: make ${target}`;
  const bytes = readImageInput(join(root, path), what, remedy);
  const builtAt = statSync(join(root, path)).mtimeMs;
  const newer = sourcesIn(join(root, sources)).filter((source) => statSync(source).mtimeMs > builtAt);
  if (newer.length > 0) throw new BuildError(`${what}: ${path} is older than its sources`, [remedy]);
  return bytes;
}

/**
 * Compiles the sources once more, in another folder: they give the same bytes in any folder.
 * @throws BuildError
 */
export async function holdCompiledParts(root: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-parts-'));
  const parts = [
    { ...ADDON, again: join(folder, 'native/strongroom.node') },
    { ...INIT, again: join(folder, 'eif/init') },
  ];
  const folders = [`native_directory=${folder}/native`, `init_directory=${folder}/eif`];
  try {
    await promisify(execFile)('make', ['-s', '-C', root, ...folders, ...parts.map(({ again }) => again)]);
    const other = parts.find(({ path, again }) => !readFileSync(join(root, path)).equals(readFileSync(again)));
    if (other === undefined) return;
    throw new BuildError(`${other.what}: ${other.path} is not what its sources compile to`, [REBUILD]);
  } catch (error) {
    if (error instanceof BuildError) throw error;
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim().split('\n') : [];
    throw new BuildError('the addon and the first process do not compile', said.slice(0, MAX_SAID_LINES));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const REBUILD = 'compile it from them: rm -rf build/native build/eif && make image-parts';
const MAX_SAID_LINES = 20;

function sourcesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.(?:c|h|mk)$/.test(name))
    .map((name) => join(folder, name));
}
