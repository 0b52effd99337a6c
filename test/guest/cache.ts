// What takes minutes to make and is the same each time: kept outside of the checkout, one folder a recipe. A folder is
// made beside its place and moved into it, so that half of one is never taken for the whole.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

export function cacheRoot(env: NodeJS.ProcessEnv = process.env): string {
  return join(env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'strongroom');
}

/**
 * @param recipe everything that decides what is made; another one is another folder
 * @param make fills the folder that it is given
 */
export function cached(name: string, recipe: readonly string[], make: (folder: string) => void): string {
  const digest = createHash('sha256').update(JSON.stringify(recipe)).digest('hex').slice(0, 16);
  const place = join(cacheRoot(), `${name}-${digest}`);
  if (existsSync(place)) return place;
  mkdirSync(cacheRoot(), { recursive: true });
  const aside = mkdtempSync(join(cacheRoot(), `${name}.`));
  try {
    make(aside);
    if (!existsSync(place)) renameSync(aside, place); // another run may have been faster
    return place;
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}
