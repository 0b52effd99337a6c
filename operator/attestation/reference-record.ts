// What a pcrs.json says beside its measurements, for a report. None of it is compared with a document but through the
// registers, and what has another form than ours is passed over.

import { readFileSync } from 'node:fs';
import { parseStrictJson } from '../../common/formats/strict-json.ts';

export interface ReferenceRecord {
  readonly commit: string | undefined;
  readonly version: string | undefined;
  readonly imageSha256: string | undefined;
  readonly configurationDigest: string | undefined;
  readonly ceremonyDigest: string | undefined;
}

export function readReferenceRecord(path: string): ReferenceRecord {
  const parsed = parseStrictJson(readFileSync(path));
  const file = parsed.kind === 'refused' ? undefined : parsed.value;
  return {
    commit: commitOf(valueAt(file, 'commit')),
    version: textOf(valueAt(file, 'tool', 'strongroom')),
    imageSha256: hexOf(valueAt(file, 'image', 'sha256'), 64),
    configurationDigest: hexOf(valueAt(file, 'configuration_digest_sha384'), 96),
    ceremonyDigest: hexOf(valueAt(file, 'ceremony', 'digest_sha384'), 96),
  };
}

function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return at;
}

function hexOf(value: unknown, digits: number): string | undefined {
  return typeof value === 'string' && value.length === digits && /^[0-9a-f]+$/.test(value) ? value : undefined;
}

function commitOf(value: unknown): string | undefined {
  return typeof value === 'string' && /^(?:[0-9a-f]{40}(?:-modified)?|unknown)$/.test(value) ? value : undefined;
}

function textOf(value: unknown): string | undefined {
  const MAX_CHARACTERS = 64;
  return typeof value === 'string' && value.length <= MAX_CHARACTERS ? value : undefined;
}
