// The vectors of docs/specification/evidence.md, as a test reads them and as a verifier is asked about them.

import { readFileSync } from 'node:fs';
import type { Case, Evidence } from './vectors/cases.ts';

export type VectorCase = Case;

export interface Vectors {
  readonly root_sha256: string;
  readonly reference_values: Readonly<Record<string, object>>;
  readonly evidence: Readonly<Record<string, Evidence>>;
  readonly cases: readonly Case[];
}

export const VECTORS_FILE = new URL('../../vectors/verification-v1.json', import.meta.url);

export function readVectors(): Vectors {
  return JSON.parse(readFileSync(VECTORS_FILE, 'utf8')) as Vectors;
}

/** @param tables the file of each table of reference values */
export function argumentsOf(asked: Case, tables: ReadonlyMap<string, string>): string[] {
  const file = asked.reference_values === null ? undefined : tables.get(asked.reference_values);
  return [
    ...['--at', asked.judged_at, '--max-age', String(asked.max_age_seconds)],
    ...(asked.nonce === null ? [] : ['--nonce', asked.nonce]),
    ...(file === undefined ? [] : ['--pcrs', file]),
    ...(asked.any_configuration === true ? ['--any-configuration'] : []),
  ];
}
