// Receipts, judged by both verifiers: the published vectors, and logs at random that are changed at random. What two
// implementations agree on, docs/specification/receipts.md says.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { decodeEntry } from '../../common/receipts/read-entry.ts';
import { findPython } from '../support/needs.ts';
import { sized, testSeed } from '../support/scale.ts';
import { encodeEntry } from './encode-entry.ts';
import { hostileCases } from './hostile.ts';
import { judged } from './judged.ts';
import { modelCases } from './model.ts';
import { makeReceiptVectors, type ReceiptVectors } from './receipt-cases.ts';

const FILE = fileURLToPath(new URL('../vectors/receipts-v1.json', import.meta.url));
const PROGRAM = fileURLToPath(new URL('../../docs/examples/verify_receipts.py', import.meta.url));
/** Only so that a program that hangs is named. */
const LIMIT_MS = 1_800_000;
const python = findPython('cryptography');
const published = JSON.parse(readFileSync(FILE, 'utf8')) as ReceiptVectors;

function judgedByPython(vectors: ReceiptVectors) {
  const folder = mkdtempSync(join(tmpdir(), 'strongroom-receipts-'));
  try {
    writeFileSync(join(folder, 'vectors.json'), JSON.stringify(vectors));
    return spawnSync(python ?? '', [PROGRAM, '--vectors', join(folder, 'vectors.json')], {
      encoding: 'utf8',
      maxBuffer: 64 * 1024 * 1024,
      env: { PATH: process.env['PATH'] ?? '', PYTHONDONTWRITEBYTECODE: '1' },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe('the published vectors', () => {
  it('are what this program makes', () => {
    expect(makeReceiptVectors()).toEqual(published);
  });

  it.each(published.logs)('$name: $verdict $faults', ({ verdict, faults, known = [], ...one }) => {
    expect(judged(published, one)).toEqual({ verdict, faults, known });
  });

  it.each(published.entries)('entry, $name', ({ hex, members }) => {
    const bytes = Buffer.from(hex, 'hex');
    const entry = decodeEntry(bytes);
    expect(entry !== undefined).toBe(members !== null);
    if (entry !== undefined) expect(encodeEntry(entry).equals(bytes)).toBe(true);
  });

  it.runIf(python !== undefined)('get the same answers from verify_receipts.py', () => {
    const { stdout, stderr, status } = judgedByPython(published);
    const { entries, trees, inclusion, consistency, paths, logs } = published;
    const cases = [entries, trees, inclusion, consistency, Object.keys(paths), logs].flat().length;
    expect({ stderr, status }).toEqual({ stderr: `${cases} cases, 0 judged otherwise than stated\n`, status: 0 });
    expect(JSON.parse(stdout)).toEqual(
      Object.fromEntries(logs.map(({ name, verdict, faults, known = [] }) => [name, { verdict, faults, known }])),
    );
  });

  it.runIf(python !== undefined)('verify_receipts.py names a case that it judges otherwise than stated', () => {
    const [first, ...others] = published.logs;
    if (first === undefined) throw new Error('the vectors have no log');
    const altered = { ...published, logs: [{ ...first, verdict: 'whole' }, ...others] };
    const { stderr, status } = judgedByPython(altered);
    expect(stderr).toContain(', 1 judged otherwise than stated\n  one boot\n');
    expect(status).toBe(1);
  });
});

describe('logs at random', () => {
  const cases = modelCases(testSeed(1), sized(60, 1000));
  const vectors = { ...published, entries: [], trees: [], inclusion: [], consistency: [], paths: {}, logs: cases };

  it('hold every kind of change', () => {
    expect(new Set(cases.map(({ change }) => change)).size).toBe(16);
  });

  it.each(cases)('$name', ({ expected, hasGapsOnly, ...one }) => {
    const { verdict, faults } = judged(published, one);
    expect(expected === null ? [...expectedGaps(faults)] : faults).toEqual(
      expected === null ? [] : expect.arrayContaining([expect.toBeOneOf([...expected])]),
    );
    expect(verdict).toBe(hasGapsOnly ? 'gaps' : 'broken');
  });

  it.runIf(python !== undefined)('are judged alike by verify_receipts.py', () => {
    const own = cases.map((one) => [one.name, judged(published, one)]);
    expect(JSON.parse(judgedByPython(vectors).stdout)).toEqual(Object.fromEntries(own));
  });
});

describe('logs that attackers altered and signed again', () => {
  const BATCH = 500;
  const count = sized(300, 10_000);
  const none = { entries: [], trees: [], inclusion: [], consistency: [], paths: {} };

  it.runIf(python !== undefined)(
    `${count} of them are judged alike by verify_receipts.py`,
    { timeout: LIMIT_MS },
    () => {
      const verdicts = new Map<string, number>();
      let known = 0;
      for (let at = 0; at < count; at += BATCH) {
        const { documents, logs } = hostileCases(testSeed(1) + at, Math.min(BATCH, count - at));
        const vectors = { ...published, ...none, documents, logs };
        const own = Object.fromEntries(logs.map((one) => [one.name, judged(vectors, one)]));
        expect(JSON.parse(judgedByPython(vectors).stdout)).toEqual(own);
        for (const one of Object.values(own)) {
          verdicts.set(one.verdict, (verdicts.get(one.verdict) ?? 0) + 1);
          known += one.known.length;
        }
      }
      // They are of all kinds, and entries of some are known.
      expect([...verdicts.keys()].toSorted()).toEqual(['broken', 'gaps', 'whole']);
      expect(known).toBeGreaterThan(count / 20);
    },
  );
});

/** Of logs that nobody changed: what is neither unattested nor without an end. */
function expectedGaps(faults: readonly string[]): readonly string[] {
  return faults.filter((fault) => fault !== 'unattested' && fault !== 'open_end');
}
