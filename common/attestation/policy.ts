// Reference values: which register contents are the expected image (specification/evidence.md#reference-values). PCR0
// is always among them: the others do not name an image.

import type { AttestationDocument } from './document.ts';
import type { EvidenceFailure } from './failure.ts';

export type ReferenceValues = ReadonlyMap<number, readonly string[]>;

/** Zero in an enclave that is debugged. */
export const IMAGE_PCRS: readonly number[] = [0, 1, 2];

/** `unchecked`: there is no reference value for it. */
export interface RegisterComparison {
  readonly index: number;
  readonly value: string | undefined;
  readonly result: 'match' | 'mismatch' | 'unchecked';
  readonly accepted: readonly string[];
}

export function compareRegisters(
  { pcrs }: Pick<AttestationDocument, 'pcrs'>,
  reference: ReferenceValues | undefined,
): readonly RegisterComparison[] {
  const indexes = [...new Set([...pcrs.keys(), ...(reference?.keys() ?? [])])].sort((a, b) => a - b);
  return indexes.map((index) => {
    const value = pcrs.get(index)?.toString('hex');
    const accepted = reference?.get(index);
    if (accepted === undefined) return { index, value, result: 'unchecked', accepted: [] };
    const matches = value !== undefined && accepted.includes(value);
    return { index, value, result: matches ? 'match' : 'mismatch', accepted };
  });
}

export function policyFailures(document: AttestationDocument, reference: ReferenceValues): readonly EvidenceFailure[] {
  return compareRegisters(document, reference)
    .filter(({ result }) => result === 'mismatch')
    .map(({ index, value, accepted }) => ({
      code: 'wrong_pcr',
      pcr: index,
      detail: `PCR${index} ${value === undefined ? 'is not in the document' : `is ${value}`}, expected ${accepted.join(' or ')}`,
    }));
}
