// Where a Python is that has a package, for tests that hold ours against somebody else's implementation. Without it
// they are skipped with a visible message; with REQUIRE_VECTORS=1 that is a failure.

import { spawnSync } from 'node:child_process';

/** The one of the PATH, then the system's, which has Debian's packages. */
const CANDIDATES = ['python3', '/usr/bin/python3'];

export function findPython(module: string): string | undefined {
  const found = CANDIDATES.find((python) => spawnSync(python, ['-c', `import ${module}`]).status === 0);
  if (found !== undefined) return found;
  const missing = `there is no python3 with the package ${module} (Debian: python3-${module})`;
  if (process.env['REQUIRE_VECTORS'] === '1') throw new Error(missing);
  console.warn(`SKIPPED: ${missing}; REQUIRE_VECTORS=1 makes this a failure`);
  return undefined;
}
