// A case of the vectors of receipts before our verifier, and its answer in the words of the vectors.

import {
  type DocumentJudge,
  type KnownEntry,
  type ShownBoot,
  verifyReceipts,
  WHOLE_LOGS,
} from '../../common/receipts/verify.ts';
import type { LogCase, WrittenBoot, WrittenEntry } from './log-cases.ts';
import type { ReceiptVectors } from './receipt-cases.ts';

function judgeOf({ documents }: Pick<ReceiptVectors, 'documents'>): DocumentJudge {
  return (document, userData) => documents[document.toString('base64')] === userData.toString('hex');
}

function shownBoot({ identity, heads, entries }: WrittenBoot): ShownBoot {
  const bytes = (text: string): Buffer => Buffer.from(text, 'base64');
  const shown = (entry: WrittenEntry) => (typeof entry === 'string' ? bytes(entry) : { hash: bytes(entry.hash) });
  return { identity, heads, entries: entries?.map(shown) };
}

export interface JudgedLogs {
  readonly verdict: string;
  readonly faults: readonly string[];
  readonly known: readonly string[];
}

/** What our verifier, or a mutant of it, says of a case, as verify_receipts.py says it. */
export function judged(
  vectors: Pick<ReceiptVectors, 'documents'>,
  { boots, asked = {} }: Pick<LogCase, 'boots' | 'asked'>,
  verify: typeof verifyReceipts = verifyReceipts,
): JudgedLogs {
  const { from = WHOLE_LOGS.fromMs, to = WHOLE_LOGS.toMs, removable = WHOLE_LOGS.removableMs } = asked;
  const question = { fromMs: from, toMs: to, removableMs: removable, takesUnattested: asked.unattested ?? false };
  const known: string[] = [];
  const { verdict, findings } = verify(boots.map(shownBoot), judgeOf(vectors), question, (one) => {
    const root = Buffer.from(one.entry.signingRoot ?? []).toString('hex');
    const isAsked = asked.roots?.includes(root) === true;
    if (isAsked) known.push(knownLine(one, root));
    return isAsked;
  });
  const faults = [...new Set(findings.map(({ fault }) => fault))].toSorted();
  return { verdict, faults, known: verdict === 'broken' ? [] : known.toSorted() };
}

function knownLine({ boot, index, head, accepted, entry }: KnownEntry, root: string): string {
  return [root, entry.reason ?? 'signed', boot, index, head, accepted].join(' ');
}
