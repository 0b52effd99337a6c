// test/vectors/verification-v1.json, which the specification hands to other verifiers: `operator verify` gives every
// case the verdict, the step and the codes that are written there.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { FAILURES } from '../../../common/attestation/failure.ts';
import { runWithRoot } from '../run-operator.ts';
import { argumentsOf, readVectors, type VectorCase } from './verification-vectors.ts';

const vectors = readVectors();
const folder = mkdtempSync(join(tmpdir(), 'strongroom-vectors-'));
const tables = new Map(
  Object.entries(vectors.reference_values).map(([name, measurements]) => {
    const file = join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify({ measurements }));
    return [name, file];
  }),
);

afterAll(() => rmSync(folder, { recursive: true }));

interface Report {
  readonly verdict: string;
  readonly findings: readonly {
    readonly steps: readonly { readonly name: string; readonly result: string }[];
    readonly failures: readonly { readonly code: string }[];
  }[];
}

async function judge(asked: VectorCase, at: number): Promise<object> {
  const { form, base64 } = vectors.evidence[asked.evidence] ?? { form: 'none', base64: '' };
  const file = join(folder, `${at}`);
  const wrapped = base64.replace(/(.{64})/g, '$1\n');
  const pem = `-----BEGIN CERTIFICATE-----\n${wrapped}\n-----END CERTIFICATE-----\n`;
  writeFileSync(file, form === 'certificate' ? pem : Buffer.from(base64, 'base64'));
  const argv = ['verify', file, ...argumentsOf(asked, tables), '--json'];
  const { stdout } = await runWithRoot(argv, { rootFingerprint: asked.root_sha256 ?? vectors.root_sha256 });
  const { verdict, findings } = JSON.parse(stdout) as Report;
  const step = findings[0]?.steps.find(({ result }) => result === 'failed')?.name ?? null;
  return { verdict, step, codes: findings[0]?.failures.map(({ code }) => code) };
}

describe('verification-v1.json', () => {
  it.each(vectors.cases.map((asked, at) => [asked.name, asked, at] as const))('%s', async (_, asked, at) => {
    const { verdict, step, codes } = asked;
    expect(await judge(asked, at)).toEqual({ verdict, step, codes });
  });

  it('has every verdict and every code that evidence in a file can get', () => {
    const seen = new Set(vectors.cases.flatMap(({ codes }) => codes));
    const codes = Object.keys(FAILURES).filter((code) => code !== 'relayed'); // of a connection
    expect([...seen].sort()).toEqual(codes.sort());
  });
});
