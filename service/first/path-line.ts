// What a shell needs so that `strongroom` is this program: a tarball that was unpacked, and a checkout, are on no PATH,
// and what a first step prints to go on with is copied.

import { realpathSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

const NAME = 'strongroom';

/**
 * @param entry the script that Node.js runs: in a checkout it lies in bin/, in a release next to bin/
 * @returns undefined where a shell finds this program already
 */
export function pathLine(entry: string | undefined, path: string | undefined): string | undefined {
  const own = entry === undefined ? undefined : real(join(dirname(entry), '../bin', NAME));
  if (own === undefined) return undefined;
  const folders = (path ?? '').split(delimiter).filter((folder) => folder !== '');
  const found = folders.map((folder) => real(join(folder, NAME))).find((program) => program !== undefined);
  return found === own ? undefined : `export PATH="${dirname(own)}:$PATH"`;
}

function real(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
