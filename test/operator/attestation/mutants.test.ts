// The test vectors of evidence ask for every check: each program, with one check or one operand of a condition taken
// out, gives some case another verdict. So a verifier that passes the vectors lacks no check of these.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { findPython } from '../../support/needs.ts';
import { SCALE_ENVIRONMENT } from '../../support/scale.ts';

const run = promisify(execFile);
const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
/** Only so that a program that hangs is named. */
const LIMIT_MS = 1_800_000;
const MIN_MUTANTS_OF_OURS = 150;
const MIN_MUTANTS_OF_PYTHON = 350;
const python = findPython('cryptography');

async function mutants(program: string, ...args: string[]) {
  const env = {
    ...SCALE_ENVIRONMENT,
    PATH: process.env['PATH'] ?? '',
    PYTHONDONTWRITEBYTECODE: '1',
    NODE_NO_WARNINGS: '1',
  };
  const { stdout } = await run(program, args, { env });
  return JSON.parse(stdout) as { mutants: number; survivors: string[]; killed_equivalents: string[] };
}

it(
  'every check of our own verification that is deleted fails a case',
  async () => {
    const found = await mutants(process.execPath, path('mutants.ts'));
    expect(found).toMatchObject({ survivors: [], killed_equivalents: [] });
    expect(found.mutants).toBeGreaterThan(MIN_MUTANTS_OF_OURS);
  },
  LIMIT_MS,
);

it.runIf(python !== undefined)(
  'every check of verify.py and verify_key.py that is deleted, and every limit that is moved by one, fails a case',
  async () => {
    const folders = ['../../../docs/examples', '../../vectors'].map(path);
    const found = await mutants(python ?? '', path('mutants.py'), ...folders);
    expect(found).toMatchObject({ survivors: [], killed_equivalents: [] });
    expect(found.mutants).toBeGreaterThan(MIN_MUTANTS_OF_PYTHON);
  },
  LIMIT_MS,
);
