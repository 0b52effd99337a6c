// One image, built once for all tests of a file, with the project and the inputs that it was built from.

import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { addonForTests } from '../support/addon.ts';
import { otherUser } from '../support/nobody.ts';
import { IS_WHOLE } from '../support/scale.ts';
import {
  type Built,
  buildArguments,
  build as buildWith,
  eif as runEif,
  writeInputs as writeInputsOf,
} from './image-program.ts';
import { compiledBefore, copyProject } from './project-copy.ts';

export const PROGRAM = fileURLToPath(new URL('../../bin/strongroom', import.meta.url));
export const withAddon = addonForTests() && process.platform === 'linux' && process.arch === 'x64';
export const user = otherUser();

export let folder: string;
export let project: string;
export let inputs: string;
export let built: Built;

export const eif = (argv: readonly string[], env = {}) => runEif(project, argv, { env });
export const writeInputs = (to: string): string => writeInputsOf(project, to);

/** At the small size only one build holds its parts against sources and packages: the other user's, or the first. */
export function quick(): Readonly<Record<string, string>> {
  return IS_WHOLE ? {} : { ...compiledBefore(join(project, 'build')), npm_config_cache: join(folder, 'no-cache') };
}

export function build(from: string, to: string, more: readonly string[] = []): Built {
  return buildWith(project, [...buildArguments(from, to), ...more], to, { env: quick() });
}

export function readable(path: string): string {
  mkdirSync(path, { recursive: true });
  chmodSync(path, 0o777);
  return path;
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'strongroom-image-test-'));
  chmodSync(folder, 0o755);
  if (!withAddon) return;
  project = join(folder, 'project');
  copyProject(project);
  inputs = writeInputs(join(folder, 'inputs'));
  // With the packages, so that the records are the same.
  const env = IS_WHOLE || user === undefined ? {} : compiledBefore(join(project, 'build'));
  const to = join(folder, 'image');
  built = buildWith(project, buildArguments(inputs, to), to, { env });
});
afterAll(() => rmSync(folder, { recursive: true }));

interface ImageRecord {
  readonly measurements: Record<string, string>;
  readonly inputs: readonly { path: string; sha256: string; size: number }[];
}

export const record = (): ImageRecord => JSON.parse(built.record.toString('utf8')) as ImageRecord;
