// The provenance of a master key, judged by both verifiers: the published vectors, and the same cases under an
// authority of this run. What two implementations agree on, docs/specification/evidence.md says.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { MAX_KEY_EVIDENCE_CHARACTERS, verifyKeyEvidence } from '../../common/attestation/key-evidence.ts';
import { verifyRowEvidence } from '../../common/attestation/row-evidence.ts';
import { findPython } from '../support/needs.ts';
import { judgedBy } from './judged.ts';
import { type KeyEvidenceCase, type KeyEvidenceVectors, makeKeyEvidenceVectors } from './key-evidence-cases.ts';

const FILE = fileURLToPath(new URL('../vectors/master-key-evidence-v1.json', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../docs/examples/verify_key.py', import.meta.url));
/** DynamoDB's limit; a record of 255 custody keys needs less than the rest. */
const MAX_ITEM_BYTES = 400 * 1024;
const python = findPython('cryptography');

const published = JSON.parse(readFileSync(FILE, 'utf8')) as KeyEvidenceVectors;
const fresh = await makeKeyEvidenceVectors();

const judged = (vectors: KeyEvidenceVectors, one: KeyEvidenceCase) =>
  judgedBy({ verifyKeyEvidence, verifyRowEvidence }, vectors, one);

function judgedByPython(vectors: KeyEvidenceVectors) {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-key-'));
  try {
    writeFileSync(join(folder, 'vectors.json'), JSON.stringify(vectors));
    return spawnSync(python ?? '', [PROGRAM, '--vectors', join(folder, 'vectors.json')], {
      encoding: 'utf8',
      env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe.each([
  ['published', published],
  ['fresh', fresh],
])('the %s vectors', (_name, vectors) => {
  it.each(vectors.cases)('$name: $fault', (one) => {
    expect(judged(vectors, one)).toBe(one.fault);
  });

  it.runIf(python !== undefined)('get the same verdicts from verify_key.py', () => {
    const { stdout, stderr } = judgedByPython(vectors);
    expect(stderr).toBe(`${vectors.cases.length} cases, 0 judged otherwise than stated\n`);
    expect(JSON.parse(stdout)).toEqual(Object.fromEntries(vectors.cases.map(({ name, fault }) => [name, fault])));
  });
});

it('both hold the same cases', () => {
  const named = ({ cases }: KeyEvidenceVectors) => cases.map(({ name, fault }) => ({ name, fault }));
  expect(named(published)).toEqual(named(fresh));
});

it('both verifiers take 300,000 characters, and none more', () => {
  const evidence = fresh.cases.find(({ name }) => name === 'made by this image')?.evidence ?? '';
  const padded = (characters: number): string =>
    evidence.replace('"id":"', `"id":"${'x'.repeat(characters - evidence.length)}`);
  const cases: readonly KeyEvidenceCase[] = [
    { name: 'at the edge', evidence: padded(MAX_KEY_EVIDENCE_CHARACTERS), fault: 'other_statement' },
    { name: 'past it', evidence: padded(MAX_KEY_EVIDENCE_CHARACTERS + 1), fault: 'malformed' },
  ];
  expect(cases.map((one) => judged(fresh, one))).toEqual(cases.map(({ fault }) => fault));
  if (python !== undefined) expect(judgedByPython({ ...fresh, cases }).status).toBe(0);
});

it('a full chain leaves a quarter of an item to the record', () => {
  expect(MAX_KEY_EVIDENCE_CHARACTERS).toBeLessThanOrEqual(0.75 * MAX_ITEM_BYTES);
});
