// The file of profiles: what it holds, and the names in it, for completion while the user types. profile.ts judges what
// a profile may say and who may have written it: its schemas take longer to load.

import { closeSync, fstatSync, openSync, readFileSync, type Stats } from 'node:fs';
import { profilePath } from '../common/command-line/profile-path.ts';
import type { Terminal } from '../common/command-line/terminal.ts';
import { errorCode } from '../common/formats/error-code.ts';
import { isRecord } from '../common/formats/is-record.ts';
import { parseStrictYaml } from '../common/formats/yaml.ts';
import { localFailure } from './exit.ts';
import { fileFailure } from './file-failure.ts';

const MAX_PROFILE_BYTES = 1024 * 1024;

export function profileNames(env: Terminal['env']): readonly string[] {
  try {
    const file = readIfThere(profilePath(env));
    const document = file === undefined ? undefined : parseStrictYaml(file.content);
    return document === undefined || 'problems' in document ? [] : keysOf(memberOf(document.value, 'profiles'));
  } catch {
    return [];
  }
}

export function readIfThere(path: string): { readonly content: string; readonly stats: Stats } | undefined {
  try {
    const file = openSync(path, 'r');
    try {
      const stats = fstatSync(file);
      if (stats.size > MAX_PROFILE_BYTES) throw localFailure(`${path} is larger than ${MAX_PROFILE_BYTES} bytes`);
      return { content: readFileSync(file, 'utf8'), stats };
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === undefined) throw error;
    throw fileFailure(path, 'read', code);
  }
}

function memberOf(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function keysOf(value: unknown): readonly string[] {
  return isRecord(value) ? Object.keys(value) : [];
}
