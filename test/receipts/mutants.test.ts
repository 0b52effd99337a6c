// The test vectors of receipts ask for every check of both verifiers: with a check or an operand taken out, or a limit
// moved by one, one gives some case another answer.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { findPython } from '../support/needs.ts';
import { SCALE_ENVIRONMENT } from '../support/scale.ts';

const run = promisify(execFile);
const path = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
/** Only so that a program that hangs is named. */
const LIMIT_MS = 1_800_000;
const MIN_MUTANTS = 150;
const MIN_OWN_MUTANTS = 70;
const python = findPython('cryptography');

it.runIf(python !== undefined)(
  'every check of verify_receipts.py that is deleted, and every limit that is moved by one, fails a case',
  async () => {
    const files = ['mutants.py', '../../docs/examples/verify_receipts.py', '../vectors/receipts-v1.json'].map(path);
    const env = { ...SCALE_ENVIRONMENT, PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' };
    const { stdout } = await run(python ?? '', files, { env });
    const found = JSON.parse(stdout) as { mutants: number; survivors: string[]; killed_equivalents: string[] };
    expect(found).toMatchObject({ survivors: [], killed_equivalents: [] });
    expect(found.mutants).toBeGreaterThan(MIN_MUTANTS);
  },
  LIMIT_MS,
);

it(
  'every check of our own verifier that is taken out fails a case',
  async () => {
    const env = { ...SCALE_ENVIRONMENT, PATH: process.env['PATH'] ?? '', NODE_NO_WARNINGS: '1' };
    const { stdout } = await run(process.execPath, [path('mutants.ts')], { env });
    const found = JSON.parse(stdout) as { mutants: number; survivors: string[]; killed_equivalents: string[] };
    expect(found).toMatchObject({ survivors: [], killed_equivalents: [] });
    expect(found.mutants).toBeGreaterThan(MIN_OWN_MUTANTS);
  },
  LIMIT_MS,
);
