// Which checks of our own verification no case of the test vectors asks for, as mutants.py finds for verify.py: deletes
// each, and judges all cases again. It is a program, which prints the number of mutants and each survivor.
//
//     bin/pinned-node test/operator/attestation/mutants.ts

import { parseReferenceFile } from '../../../common/attestation/reference-file.ts';
import type { verifyDocument } from '../../../common/attestation/verify.ts';
import type { verifyCertificate } from '../../../operator/attestation/certificate-evidence.ts';
import { findMutants } from '../../support/mutants.ts';
import { readVectors, type VectorCase } from './verification-vectors.ts';

/** Copied for each mutant: whatever imports one of them has to be one of them. */
const FILES = [
  ...['failure', 'certificate', 'document', 'chain', 'policy', 'verify'].map((name) => `common/attestation/${name}.ts`),
  'operator/attestation/certificate-evidence.ts',
];
const MUTATED = FILES.filter((file) => !/failure|policy/.test(file));

/** By mutant: why no evidence shows it. One that is killed after all, or is gone, is told. */
const EQUIVALENT: Readonly<Record<string, string>> = {
  'without the operand: spki.subarray(0, head.length).equals(head)':
    'OpenSSL knows no other key that has 04 at this place',
  "without: demand(unprotectedHeader.size === 0, 'malformed_document', 'the unprotected header is not empty');":
    'the deterministic encoding, which is compared below, has an empty one',
  "without: demand(leafKey !== undefined, 'broken_chain', 'there is no certificate');":
    'a document that is read has a certificate; the check is for the types',
};

interface Programs {
  readonly verifyDocument: typeof verifyDocument;
  readonly verifyCertificate: typeof verifyCertificate;
}

const vectors = readVectors();
const tables = new Map(
  Object.entries(vectors.reference_values).map(([name, measurements]) => [
    name,
    parseReferenceFile(Buffer.from(JSON.stringify({ measurements }))),
  ]),
);

function isJudgedAsStated(one: VectorCase, programs: Programs): boolean {
  const { form, base64 } = vectors.evidence[one.evidence] ?? { form: 'document', base64: '' };
  const options = {
    provider: { name: 'the vectors', rootSha256: one.root_sha256 ?? vectors.root_sha256 },
    at: Date.parse(one.judged_at),
    maxAgeSeconds: one.max_age_seconds,
    nonce: one.nonce === null ? undefined : Buffer.from(one.nonce, 'hex'),
    referenceValues: one.reference_values === null ? undefined : tables.get(one.reference_values),
  };
  const bytes = Buffer.from(base64, 'base64');
  try {
    const verdict =
      form === 'certificate'
        ? programs.verifyCertificate(bytes, options).verdict
        : programs.verifyDocument(bytes, options);
    const step = verdict.steps.find(({ result }) => result === 'failed')?.name ?? null;
    const codes = verdict.failures.map(({ code }) => code);
    const authentic = one.verdict !== 'not_authentic';
    return (
      verdict.authentic === authentic &&
      verdict.expected === ['expected', 'partly_compared'].includes(one.verdict) &&
      step === one.step &&
      codes.join() === one.codes.join()
    );
  } catch {
    return false;
  }
}

const cases = [...vectors.cases];
/** The case that killed one is asked first of the next. */
function isKilled(programs: Programs): boolean {
  const at = cases.findIndex((one) => !isJudgedAsStated(one, programs));
  if (at > 0) cases.unshift(...cases.splice(at, 1));
  return at !== -1;
}

const found = await findMutants<Programs>({
  files: FILES,
  mutated: MUTATED,
  checks: ['demand', 'form'],
  equivalent: EQUIVALENT,
  load: async (module) => ({
    ...((await module('common/attestation/verify.ts')) as Pick<Programs, 'verifyDocument'>),
    ...((await module('operator/attestation/certificate-evidence.ts')) as Pick<Programs, 'verifyCertificate'>),
  }),
  isKilled,
});
console.log(JSON.stringify(found, null, 1));
