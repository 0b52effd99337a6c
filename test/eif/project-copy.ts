// The project in another folder, for builds that must come out alike: its sources copied, and what was compiled of them.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { PINNED_NODE } from '../../eif/node-binary.ts';
import { PROJECT_ROOT } from '../support/addon.ts';

const architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64';

/** Absolute. */
export const NODE_OF_IMAGES = join(PROJECT_ROOT, 'node_modules', PINNED_NODE[architecture].package, 'bin/node');

/**
 * What was compiled already is taken along; `make` compiles it again only where its sources are newer. A build compiles
 * the addon and the first process once more, there, and refuses what was taken along when it differs.
 * @param from a copy, where nobody edits sources in the meantime
 */
export function copyProject(to: string, from = PROJECT_ROOT): void {
  copySources(from, to);
  cpSync(join(from, 'build/native'), join(to, 'build/native'), { recursive: true, preserveTimestamps: true });
  execFileSync('make', ['native', 'build/eif/init', 'build/launcher/strongroom'], { cwd: to, stdio: 'pipe' });
}

/** Settings of a build that is about something else than compiling: it gets as compiled what lies beneath the folder. */
export function compiledBefore(folder: string): Readonly<Record<string, string>> {
  return { CC: `sh '${join(import.meta.dirname, 'compiled-before.sh')}'`, COMPILED_BEFORE: folder };
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
    'service',
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
