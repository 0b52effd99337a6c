// The vectors and cases of a master key's evidence ask for every check: our own verification, with one check, one
// operand of a condition or one bound taken out, or one limit moved by one, judges some case otherwise. The mutants of
// verify_key.py are in test/operator/attestation.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { SCALE_ENVIRONMENT } from '../support/scale.ts';

const PROGRAM = fileURLToPath(new URL('mutants.ts', import.meta.url));
/** Only so that a program that hangs is named. */
const LIMIT_MS = 1_800_000;
const MIN_MUTANTS = 80;

it(
  'every check of the evidence of keys and rows, and of what a status shows, that is taken out fails a case',
  async () => {
    const env = { ...SCALE_ENVIRONMENT, PATH: process.env['PATH'] ?? '', NODE_NO_WARNINGS: '1' };
    const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM], { env });
    const found = JSON.parse(stdout) as { mutants: number; survivors: string[]; killed_equivalents: string[] };
    expect(found).toMatchObject({ survivors: [], killed_equivalents: [] });
    expect(found.mutants).toBeGreaterThanOrEqual(MIN_MUTANTS);
  },
  LIMIT_MS,
);
