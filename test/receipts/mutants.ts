// Which checks of our verification of receipts no case of the test vectors asks for: takes out each, and judges all
// cases again. It is a program, as that of test/attestation.
//
//     bin/pinned-node test/receipts/mutants.ts

import { readFileSync } from 'node:fs';
import type { verifyReceipts } from '../../common/receipts/verify.ts';
import { findMutants } from '../support/mutants.ts';
import { judged } from './judged.ts';
import type { ReceiptVectors } from './receipt-cases.ts';

const VERIFY = 'common/receipts/verify.ts';
const VECTORS = new URL('../vectors/receipts-v1.json', import.meta.url);

/** By mutant: why no log shows it. One that is killed after all, or is gone, is told. */
const EQUIVALENT: Readonly<Record<string, string>> = {
  'without the operand: identity.document === null':
    'a document that is not accepted breaks the logs, of which nothing is said',
};

const vectors = JSON.parse(readFileSync(VECTORS, 'utf8')) as ReceiptVectors;
const logs = [...vectors.logs];

/** The case that killed one is asked first of the next. */
function isKilled(verify: typeof verifyReceipts): boolean {
  const at = logs.findIndex((one) => {
    try {
      const { verdict, faults, known } = judged(vectors, one, verify);
      const stated = { verdict: one.verdict, faults: one.faults, known: one.known ?? [] };
      return JSON.stringify({ verdict, faults, known }) !== JSON.stringify(stated);
    } catch {
      return true;
    }
  });
  if (at > 0) logs.unshift(...logs.splice(at, 1));
  return at !== -1;
}

const found = await findMutants<typeof verifyReceipts>({
  files: [VERIFY],
  mutated: [VERIFY],
  withBounds: true,
  equivalent: EQUIVALENT,
  load: async (module) => ((await module(VERIFY)) as { verifyReceipts: typeof verifyReceipts }).verifyReceipts,
  isKilled,
});
console.log(JSON.stringify(found, null, 1));
