// Where the test vectors lie: beside the project, never in it. Without them the tests that need them are skipped with a
// visible message; with REQUIRE_VECTORS=1 a missing file fails instead.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../shared/vectors/', import.meta.url));

/** A file of the requirement, which lies beside the vectors, or undefined when it is missing and may be. */
export function specificationText(name: string): string | undefined {
  const path = vectorPath(`../spec/${name}`);
  return path === undefined ? undefined : readFileSync(path, 'utf8');
}

/** The absolute path of a file or folder of the vectors, or undefined when it is missing and may be. */
export function vectorPath(path: string): string | undefined {
  const full = join(ROOT, path);
  if (existsSync(full)) return full;
  if (process.env['REQUIRE_VECTORS'] === '1') throw new Error(`the test vector ${path} is missing`);
  console.warn(`SKIPPED: the test vector ${path} is not there (REQUIRE_VECTORS=1 makes this a failure)`);
  return undefined;
}

/** A vector file as parsed JSON, or undefined when it is missing and may be. */
export function vectorJson<T>(path: string): T | undefined {
  const full = vectorPath(path);
  return full === undefined ? undefined : (JSON.parse(readFileSync(full, 'utf8')) as T);
}

/** The names of the JSON files of a folder of the vectors; empty when it is missing and may be. */
export function vectorNames(folder: string): string[] {
  const full = vectorPath(folder);
  return full === undefined ? [] : readdirSync(full).filter((name) => name.endsWith('.json'));
}

/** A file of one JSON value a line, or undefined when it is missing and may be. */
export function vectorLines<T>(path: string): T[] | undefined {
  const full = vectorPath(path);
  if (full === undefined) return undefined;
  const lines = readFileSync(full, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as T);
}
