// What the report's page says in sentences: of a verdict, of each step, of what was not asked.

import type { StepName } from '../../../common/attestation/verify.ts';
import type { Finding, VerdictName } from '../report.ts';

export type Tone = 'good' | 'bad' | 'open';

interface VerdictWords {
  readonly tone: Tone;
  readonly sign: string;
  readonly title: string;
  readonly meaning: string;
}

export const VERDICT_WORDS: Readonly<Record<VerdictName, VerdictWords>> = {
  expected: {
    tone: 'good',
    sign: '✔',
    title: 'Authentic and expected',
    meaning: 'A genuine enclave made this evidence, and its registers have the reference values that were given.',
  },
  /** Green stands only over what the verifier compared. */
  partly_compared: {
    tone: 'open',
    sign: '!',
    title: 'Authentic, and expected only in what was compared',
    meaning: 'A genuine enclave made this evidence. What follows as not compared may be anything.',
  },
  not_expected: {
    tone: 'bad',
    sign: '✘',
    title: 'Authentic, and NOT what was expected',
    meaning: 'A genuine enclave made this evidence. What runs in it is not what the reference values say.',
  },
  no_reference_values: {
    tone: 'open',
    sign: '?',
    title: 'Authentic; no reference values given',
    meaning: 'A genuine enclave made this evidence. Which image it runs was compared with nothing: this is no success.',
  },
  not_authentic: {
    tone: 'bad',
    sign: '✘',
    title: 'NOT authentic',
    meaning:
      'Nothing that the evidence says is proven. Whatever is shown of it below is a claim, and was not evaluated.',
  },
};

export const UNKNOWN_SOURCES =
  'the reference file names no commit, or one whose sources were changed (-modified): nobody else can build this image';

export const STEP_MEANINGS: Readonly<Record<StepName, string>> = {
  cose: 'the document is a COSE_Sign1 structure in its one accepted encoding, for ES384',
  payload: 'every member of the document has its form and is within its limits; none is unknown',
  chain: 'the certificates lead to the pinned root, are valid at the judged time, and may be used so',
  signature: 'the key of the chain’s leaf signed the document',
  freshness: 'the document is neither too old nor of the future, and has the nonce when one was asked for',
  binding: 'the document names the TLS key that answers',
  debug: 'PCR0, PCR1 and PCR2 are measured: the enclave does not run in debug mode',
  policy: 'every register with reference values has one of them',
};

export const RESULT_WORDS: Readonly<Record<string, { readonly tone: Tone; readonly words: string }>> = {
  passed: { tone: 'good', words: '✔ passed' },
  failed: { tone: 'bad', words: '✘ REFUSED' },
  not_asked: { tone: 'open', words: '– not asked' },
  not_reached: { tone: 'open', words: '– not reached' },
  match: { tone: 'good', words: '✔ match' },
  mismatch: { tone: 'bad', words: '✘ MISMATCH' },
  unchecked: { tone: 'open', words: '– unchecked' },
  not_evaluated: { tone: 'open', words: '– not evaluated' },
};

export const SHORT_TITLES: Readonly<Record<Finding['evidence'], string>> = {
  document: 'Document',
  certificate: 'In the certificate',
  fresh_document: 'Fresh document',
};

/** What no attestation proves (docs/guides/attestation.md). */
export const LIMITS: readonly string[] = [
  'That the image is good: only that it is the one whose measurements were given.',
  'That an enclave answers at all, or keeps answering.',
  'Anything against AWS itself, whose hardware and root are what is trusted.',
  'Revocation: AWS’s certificates are short-lived, and their revocation lists are not fetched.',
];
