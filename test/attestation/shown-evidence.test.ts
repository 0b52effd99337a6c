// What people conclude from the evidence that a status shows: each case of shown-evidence-cases.ts. A fault of which
// kind leaves the evidence authentic.

import { expect, it } from 'vitest';
import type { KeyEvidenceFault } from '../../common/attestation/key-evidence.ts';
import {
  imagesOf,
  isAuthenticFault,
  judgeShownEvidence,
  readShownEvidence,
} from '../../common/attestation/shown-evidence.ts';
import { judgedOtherwise, makeShownCases } from './shown-evidence-cases.ts';

it.each(await makeShownCases())('$name', (one) => {
  expect(judgedOtherwise(one, { imagesOf, judgeShownEvidence, readShownEvidence })).toBeUndefined();
});

it('what is of something else is authentic; what proves nothing is not', () => {
  const faults: Readonly<Record<KeyEvidenceFault, boolean>> = {
    missing: false,
    malformed: false,
    not_authentic: false,
    debug: true,
    other_statement: false,
    other_record: true,
    broken_chain: false,
    other_ceremony: true,
    other_image: true,
  };
  for (const [fault, isAuthentic] of Object.entries(faults))
    expect([fault, isAuthenticFault(fault as KeyEvidenceFault)]).toEqual([fault, isAuthentic]);
});
