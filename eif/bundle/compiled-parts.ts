// The parts of an image that a C compiler makes (`make image-parts`): the addon and the first process. One that is
// missing, or older than its sources, stops the build: an image must not have the addon of an earlier version of the
// program.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BuildError, readInput } from '../inputs.ts';
import { ADDON_SOURCE } from './locations.ts';

export interface CompiledPart {
  /** Relative to the project. */
  readonly path: string;
  /** The folder of its sources, likewise. */
  readonly sources: string;
  readonly what: string;
  /** The target of make that compiles it; `image-parts` where none is named. */
  readonly target?: string;
}

/** enclave/native/native.mk */
export const ADDON: CompiledPart = { path: ADDON_SOURCE, sources: 'enclave/native', what: 'the native addon' };
/** eif/init/init.mk */
export const INIT: CompiledPart = { path: 'build/eif/init', sources: 'eif/init', what: 'the first process' };

/** @throws BuildError */
export function readCompiledPart(root: string, { path, sources, what, target = 'image-parts' }: CompiledPart): Buffer {
  const remedy = `build it: make ${target}`;
  const bytes = readInput(join(root, path), what, remedy);
  const builtAt = statSync(join(root, path)).mtimeMs;
  const newer = sourcesIn(join(root, sources)).filter((source) => statSync(source).mtimeMs > builtAt);
  if (newer.length > 0) throw new BuildError(`${what}: ${path} is older than its sources`, [remedy]);
  return bytes;
}

function sourcesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.(?:c|h|mk)$/.test(name))
    .map((name) => join(folder, name));
}
