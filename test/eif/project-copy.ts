// The project in another folder, for builds that must come out alike: its sources copied, its compiled parts compiled
// there.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { PINNED_NODE } from '../../eif/node-binary.ts';
import { PROJECT_ROOT } from '../support/addon.ts';
import { IS_WHOLE } from '../support/scale.ts';

const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64';

/** Absolute. */
export const NODE_OF_IMAGES = join(PROJECT_ROOT, 'node_modules', PINNED_NODE[architecture].package, 'bin/node');

/** What was compiled already is taken along; `make` compiles it again only where its sources are newer. */
export function copyProject(to: string): void {
  copySources(PROJECT_ROOT, to);
  copyAddon(PROJECT_ROOT, to);
  compile(to);
}

/**
 * `make` compiles everything anew there. At the small size this function copies the addon, too: an image build refuses
 * an addon that is not what its sources compile to.
 * @param from a copy: no developer edits its sources in the meantime
 */
export function copyOfCopy(from: string, to: string): void {
  copySources(from, to);
  if (!IS_WHOLE) copyAddon(from, to);
  compile(to);
}

/** Settings of a build that is about something else: what it asks to be compiled it gets from a folder beneath this. */
export function compiledBefore(folder: string): Readonly<Record<string, string>> {
  const program = join(import.meta.dirname, 'compiled-before.sh');
  return { CC: 'sh "$$COMPILED_BEFORE_PROGRAM"', COMPILED_BEFORE_PROGRAM: program, COMPILED_BEFORE: folder };
}

function copySources(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  const parts = [
    'bin',
    'ceremony',
    'common',
    'deploy',
    'docs',
    'eif',
    'enclave',
    'operator',
    'parent-proxy',
    'rehearsal',
    'service',
    'setup',
    'signer',
    'tools',
    'Makefile',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'README.md',
    'SECURITY.md',
    'package.json',
    'package-lock.json',
  ];
  for (const part of parts) cpSync(join(from, part), join(to, part), { recursive: true, preserveTimestamps: true });
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(to, 'node_modules'));
}

function copyAddon(from: string, to: string): void {
  cpSync(join(from, 'build/native'), join(to, 'build/native'), { recursive: true, preserveTimestamps: true });
}

function compile(project: string): void {
  execFileSync('make', ['native', 'build/eif/init', 'build/launcher/strongroom'], { cwd: project, stdio: 'pipe' });
}
