// What verifiers of evidence say of a case of the vectors, for the tests of the vectors and of mutants. Mutants hand
// over programs of their own, so this file imports none.

import type { KeyEvidenceTerms, verifyKeyEvidence } from '../../common/attestation/key-evidence.ts';
import type { verifyRowEvidence } from '../../common/attestation/row-evidence.ts';
import { imagePolicy } from '../../signer/chamber/key-provenance.ts';
import type { KeyEvidenceCase, KeyEvidenceVectors } from './key-evidence-cases.ts';

export interface KeyPrograms {
  readonly verifyKeyEvidence: typeof verifyKeyEvidence;
  readonly verifyRowEvidence: typeof verifyRowEvidence;
}

/** @returns the fault, or null when the evidence is good */
export function judgedBy(
  programs: KeyPrograms,
  vectors: KeyEvidenceVectors,
  { evidence, terms }: KeyEvidenceCase,
): string | null {
  const { images, signature, ...others } = { ...vectors.terms, ...terms };
  const [own, ...acceptedImages] = images.map(({ PCR0, PCR1, PCR2 }) => ({ PCR0, PCR1, PCR2 }));
  const measurements = { 0: own?.PCR0 ?? '', 1: own?.PCR1 ?? '', 2: own?.PCR2 ?? '', 8: signature ?? '' };
  const asked: KeyEvidenceTerms = {
    ...others,
    provider: { name: 'the authority of the vectors', rootSha256: vectors.root_sha256 },
    accepts: imagePolicy({ measurements, acceptedImages }),
  };
  const { purpose, content = '', origin = '' } = others;
  const verdict =
    purpose === undefined
      ? programs.verifyKeyEvidence(evidence ?? undefined, asked)
      : programs.verifyRowEvidence(evidence ?? undefined, { ...asked, purpose, content, origin });
  return verdict.ok ? null : verdict.fault;
}
