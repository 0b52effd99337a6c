// docs/examples/verify.py, which was written from docs/specification/evidence.md alone: it gives every case of the test
// vectors the verdict, the step and the codes that `operator verify` gives, and real documents the same exit code. What
// two implementations agree on, the page says.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { AWS_NITRO } from '../../../operator/attestation/provider.ts';
import { findPython } from '../../support/python.ts';
import { vectorPath } from '../../support/vectors.ts';
import { runWithRoot } from '../run-operator.ts';
import { readVectors, VECTORS_FILE } from './verification-vectors.ts';

const PROGRAM = fileURLToPath(new URL('../../../docs/examples/verify.py', import.meta.url));
const MAX_LINES = 400;
const python = findPython('cryptography');

function run(...args: string[]) {
  return spawnSync(python ?? '', [PROGRAM, ...args], { encoding: 'utf8', env: { PATH: process.env['PATH'] ?? '' } });
}

it(`has less than ${MAX_LINES} lines`, () => {
  expect(readFileSync(PROGRAM, 'utf8').split('\n').length - 1).toBeLessThan(MAX_LINES);
});

describe.runIf(python !== undefined)('verify.py', () => {
  it('gives every case of the vectors its verdict', () => {
    const { stdout, stderr, status } = run('--vectors', fileURLToPath(VECTORS_FILE));
    const stated = readVectors().cases.map(({ name, verdict, step, codes }) => ({ name, verdict, step, codes }));
    const summary = `${stated.length} cases, 0 judged otherwise than stated\n`;
    expect({ stderr, status }).toEqual({ stderr: summary, status: 0 });
    expect(JSON.parse(stdout)).toEqual(stated);
  });

  it('names the case whose verdict is not the one that the vectors state', () => {
    const vectors = JSON.parse(readFileSync(VECTORS_FILE, 'utf8')) as { cases: { name: string; verdict: string }[] };
    const [first] = vectors.cases;
    if (first === undefined) throw new Error('the vectors have no case');
    first.verdict = 'not_expected';
    const folder = mkdtempSync(join(tmpdir(), 'strongroom-vectors-'));
    try {
      writeFileSync(join(folder, 'altered.json'), JSON.stringify(vectors));
      const { stderr, status } = run('--vectors', join(folder, 'altered.json'));
      const summary = `${vectors.cases.length} cases, 1 judged otherwise than stated\n  ${first.name}\n`;
      expect({ stderr, status }).toEqual({ stderr: summary, status: 1 });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  const document = vectorPath('attestation/base-2026-indefinite-map.bin');
  const at = ['--at', '2026-01-03T20:41:10Z'];
  const pcr0 = '4b8d4cf2a99e05ce1b5bddaf9d21cb446eb0e606c5bebd1ebf02b473a22165f7b68b0bb0d1ac5a90f0311e493522cfab';
  const asked = (hex: string) => ['--any-configuration', '--pcr', `0=${hex}`];

  it.runIf(document !== undefined).each<[string, readonly string[]]>([
    ['expected', [...at, ...asked(pcr0)]],
    ['another image', [...at, ...asked('ab'.repeat(48))]],
    ['no reference values', at],
    ['expired', asked(pcr0)],
    ['another nonce', [...at, ...asked(pcr0), '--nonce', '00']],
    ['reference values without PCR16', [...at, '--pcr', `0=${pcr0}`]],
  ])('ends on a document of AWS as `operator verify` does: %s', async (_, args) => {
    const ours = await runWithRoot(['verify', document ?? '', ...args], { rootFingerprint: AWS_NITRO.rootSha256 });
    expect(run(document ?? '', ...args).status).toBe(ours.code);
  });
});
