// Real attestation documents (vectors/attestation): the verdict that its manifest states for each, on each of its
// occasions.

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { AWS_NITRO, type DocumentProvider } from '../../../common/attestation/contract.ts';
import { parseRegisters } from '../../../common/attestation/reference-file.ts';
import { type EvidenceVerdict, verifyDocument } from '../../../common/attestation/verify.ts';
import { vectorJson, vectorPath } from '../../support/vectors.ts';

interface Vector {
  readonly file: string;
  readonly module_id: string;
  readonly timestamp: string;
  readonly rootSha256: string;
  readonly awsRoot: boolean;
  readonly chainLen: number;
  readonly user_data: { readonly len: number; readonly head: string } | null;
  readonly nonce: { readonly len: number; readonly head: string } | null;
  readonly public_key: { readonly len: number; readonly head: string } | null;
  readonly pcrs: Readonly<Record<string, string>>;
  readonly pcrIndexes: string;
  readonly certs: readonly string[];
  readonly atTimestamp: string;
  readonly now: string;
  readonly leafMaxTime: string;
  readonly afterLeaf: string;
  readonly bitflip: string;
  readonly withOwnRoot: string;
}

const vectors = vectorJson<Vector[]>('attestation/manifest.json') ?? [];
/** No age limit: it is the chain that ends a document's life here. */
const ANY_AGE_SECONDS = 1e9;

/** The manifest's words for what a failure's code says. */
const MANIFEST_WORDS: Readonly<Record<string, string>> = {
  untrusted_root: 'root',
  expired: 'expired',
  bad_signature: 'signature',
  debug: 'debug',
};

function bytesOf({ file }: Vector): Buffer {
  return readFileSync(vectorPath(`attestation/${file}`) ?? '');
}

/**
 * As the manifest writes a verdict: `OK`, or a word before a colon. The register that is asked for is the document's
 * own.
 */
function judge(vector: Vector, at: number, provider: DocumentProvider = AWS_NITRO, bytes = bytesOf(vector)): string {
  const pcr0 = vector.pcrs['0'] ?? 'ff'.repeat(48);
  const referenceValues = parseRegisters([`0=${pcr0}`]);
  const verdict = verifyDocument(bytes, { provider, at, maxAgeSeconds: ANY_AGE_SECONDS, referenceValues });
  return inManifestWords(verdict);
}

function inManifestWords({ expected, failures }: EvidenceVerdict): string {
  if (expected) return 'OK';
  const [failure] = failures;
  return MANIFEST_WORDS[failure?.code ?? ''] ?? `unknown: ${failure?.code}`;
}

/** `expired: certificate 0 …` is the manifest's detail. */
function word(stated: string): string {
  return stated.split(':')[0] ?? '';
}

function leafEnd({ certs }: Vector): number {
  return Date.parse(certs[0]?.split('-> ')[1] ?? '');
}

describe.runIf(vectors.length > 0).each(vectors)('$file', (vector) => {
  const own: DocumentProvider = { name: 'its own root', rootSha256: vector.rootSha256 };
  const made = Date.parse(vector.timestamp);

  it('at its own time', () => {
    expect(judge(vector, made)).toBe(word(vector.atTimestamp));
  });

  it('today, at the last second of its leaf, and one after', () => {
    expect(judge(vector, Date.parse('2026-11-21T00:00:00Z'))).toBe(word(vector.now));
    // The manifest judged these two with debug mode allowed, which nothing here can.
    const debugged = word(vector.atTimestamp) === 'debug' ? 'debug' : word(vector.leafMaxTime);
    expect(judge(vector, leafEnd(vector))).toBe(debugged);
    expect(judge(vector, leafEnd(vector) + 1000)).toBe(word(vector.afterLeaf));
  });

  it('with the root it has, as its provider', () => {
    expect(judge(vector, made, own)).toBe(/debug/.test(vector.withOwnRoot) ? 'debug' : word(vector.withOwnRoot));
  });

  it('with the last bit of its signature flipped', () => {
    const bytes = bytesOf(vector);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    // The one with the bad signature is a good one with this very bit flipped: it is good again.
    expect(judge(vector, made, own, bytes)).toBe(vector.bitflip === 'ACCEPTED?!' ? 'OK' : vector.bitflip);
  });

  it('is read as what it says', () => {
    const { document, steps } = verifyDocument(bytesOf(vector), { provider: own, at: made, maxAgeSeconds: 0 });
    expect(document?.moduleId).toBe(vector.module_id);
    expect(new Date(document?.timestamp ?? 0).toISOString()).toBe(vector.timestamp);
    expect([...(document?.pcrs.keys() ?? [])].join()).toBe(vector.pcrIndexes);
    for (const [index, value] of document?.pcrs ?? [])
      expect(value.toString('hex')).toBe(vector.pcrs[index] ?? '00'.repeat(48));
    for (const [field, stated] of [
      [document?.userData, vector.user_data],
      [document?.nonce, vector.nonce],
      [document?.publicKey, vector.public_key],
    ] as const) {
      expect(field?.length).toBe(stated?.len);
      expect(field?.toString('hex').slice(0, 64)).toBe(stated?.head);
    }
    expect(steps.find(({ name }) => name === 'chain')?.detail).toContain(`${vector.chainLen} certificates`);
  });
});

describe.runIf(vectors.length > 0)('the pinned root', () => {
  it('is that of AWS, by its digest', () => {
    const aws = vectors.filter(({ awsRoot }) => awsRoot);
    expect(aws.length).toBeGreaterThan(3);
    for (const { rootSha256 } of aws) expect(rootSha256).toBe(AWS_NITRO.rootSha256);
  });
});
