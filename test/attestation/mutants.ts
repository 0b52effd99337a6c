// Which checks of the verification of a master key's evidence no case asks for: deletes each, moves each limit by one,
// and judges the published vectors and the shown cases again. It is a program, as that of test/operator/attestation.
//
//     bin/pinned-node test/attestation/mutants.ts

import { readFileSync } from 'node:fs';
import { MAX_KEY_EVIDENCE_CHARACTERS } from '../../common/attestation/key-evidence.ts';
import { findMutants } from '../support/mutants.ts';
import { judgedBy, type KeyPrograms } from './judged.ts';
import type { KeyEvidenceCase, KeyEvidenceVectors } from './key-evidence-cases.ts';
import { judgedOtherwise, makeShownCases, type ShownPrograms } from './shown-evidence-cases.ts';

const FILES = ['key-evidence', 'row-evidence', 'shown-evidence'].map((name) => `common/attestation/${name}.ts`);
const [KEY = '', ROW = '', SHOWN = ''] = FILES;
const VECTORS = new URL('../vectors/master-key-evidence-v1.json', import.meta.url);

/** By mutant: why no evidence shows it. One that is killed after all, or is gone, is told. */
const EQUIVALENT: Readonly<Record<string, string>> = {
  'without the operand: first === undefined': 'a list without a first link has no last one',
  'without the operand: last === undefined': 'a list without a last link has no first one',
  'without: if (key === undefined) return undefined;': 'no member of undefined is a list, so the next check refuses it',
};

interface Programs extends ShownPrograms, KeyPrograms {}

const vectors = JSON.parse(readFileSync(VECTORS, 'utf8')) as KeyEvidenceVectors;

/** Too long for the file of vectors. */
function longCases(): readonly KeyEvidenceCase[] {
  const { evidence } = vectors.cases.find(({ name }) => name === 'made by this image') ?? { evidence: '' };
  const text = evidence ?? '';
  const padded = (characters: number): string =>
    text.replace('"id":"', `"id":"${'x'.repeat(characters - text.length)}`);
  return [
    { name: 'at the edge', evidence: padded(MAX_KEY_EVIDENCE_CHARACTERS), fault: 'other_statement' },
    { name: 'past it', evidence: padded(MAX_KEY_EVIDENCE_CHARACTERS + 1), fault: 'malformed' },
  ];
}

type Judge = (programs: Programs) => boolean;

const judges: Judge[] = [
  ...[...vectors.cases, ...longCases()].map(
    (one): Judge =>
      (programs) =>
        judgedBy(programs, vectors, one) === one.fault,
  ),
  ...(await makeShownCases()).map(
    (one): Judge =>
      (programs) =>
        judgedOtherwise(one, programs) === undefined,
  ),
];

/** The case that killed one is asked first of the next. */
function isKilled(programs: Programs): boolean {
  const at = judges.findIndex((judge) => {
    try {
      return !judge(programs);
    } catch {
      return true;
    }
  });
  if (at > 0) judges.unshift(...judges.splice(at, 1));
  return at !== -1;
}

const found = await findMutants<Programs>({
  files: FILES,
  mutated: FILES,
  withBounds: true,
  equivalent: EQUIVALENT,
  load: async (module) => ({
    ...((await module(KEY)) as Pick<Programs, 'verifyKeyEvidence'>),
    ...((await module(ROW)) as Pick<Programs, 'verifyRowEvidence'>),
    ...((await module(SHOWN)) as ShownPrograms),
  }),
  isKilled,
});
console.log(JSON.stringify(found, null, 1));
