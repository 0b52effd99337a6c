// The file that a report is kept in. It is looked at before anything is judged, so that a verification over the network
// is not lost for want of a place; it never replaces another file unasked, and then only by a whole one.

import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { bounded } from '../../command-line/text.ts';
import { localFailure } from '../exit.ts';

const MAX_PATH_CHARACTERS = 200;

/** @returns what writes the report; both throw a CommandFailure */
export function reportWriter(path: string, force: boolean): (text: string) => void {
  const place = `--report: ${bounded(path, MAX_PATH_CHARACTERS)}`;
  if (!force && existsSync(path)) throw exists(place);
  return (text) => {
    const target = force ? `${path}.${process.pid}.new` : path;
    try {
      writeFileSync(target, text, { flag: 'wx', flush: true });
      if (force) renameSync(target, path);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
      throw code === 'EEXIST'
        ? exists(`--report: ${bounded(target, MAX_PATH_CHARACTERS)}`)
        : localFailure(`${place} cannot be written (${code})`);
    }
  };
}

function exists(place: string): Error {
  return localFailure(`${place} exists`, 'name another file, or say --force to replace it');
}
