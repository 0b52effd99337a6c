// What the lockfile says of packages: which are for development only, and which are for another C library than that of
// the pinned Node.js. What is installed does not say it: npm 9 installs packages of every libc, later ones do not, and
// a bundle is the same whichever npm installed it. Refused: a lockfile of another form.

import { join } from 'node:path';
import { z } from 'zod';
import { readInput } from '../inputs.ts';

/** The pinned Node.js, and so everything beside it. */
const LIBC = 'glibc';

const lockfileSchema = z.object({
  packages: z.record(z.string(), z.object({ dev: z.boolean().optional(), libc: z.array(z.string()).optional() })),
});

/** The packages by their folders, `node_modules/NAME`, relative to the project. */
export type LockedPackages = z.infer<typeof lockfileSchema>['packages'];

/** @throws BuildError */
export function lockedPackages(root: string): LockedPackages {
  const text = readInput(join(root, 'package-lock.json'), 'the lockfile').toString('utf8');
  return lockfileSchema.parse(JSON.parse(text)).packages;
}

/**
 * Tells the imports, of a package or of a file in it, that the pinned Node.js cannot load, whether they are installed
 * or not.
 */
export function importsOfOtherLibcs(packages: LockedPackages): (path: string) => boolean {
  const others = Object.entries(packages).filter(([, { libc }]) => libc !== undefined && !libc.includes(LIBC));
  const names = others.map(([folder]) => folder.replace(/^.*node_modules\//, ''));
  return (path) => names.some((name) => path === name || path.startsWith(`${name}/`));
}
