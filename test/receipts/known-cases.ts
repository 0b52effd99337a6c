// What is known of an entry (specification/receipts.md#known), for the test vectors: the ways in which a person
// without a key of the signer would have a verifier say of an entry what no accepted boot stated.

import { encodeEntry } from './encode-entry.ts';
import { type LogCase, withFaults, withStatement, written } from './log-cases.ts';
import { type MadeLog, makeLog, naming, START_MS, testBoot, testEntry } from './logs.ts';

const PLAN = { sizes: [3, 7, 7, 12], startSeconds: 0 } as const;
const STOLEN = 'ee'.repeat(32);
const rootOf = (index: number): string => Buffer.alloc(32, index).toString('hex');
/** Of the time of PLAN, up to before its last head. */
const SPAN = { from: START_MS, to: START_MS + 200_000 } as const;
const LATER = { from: START_MS + 3_600_000 } as const;

function asking(one: LogCase, asked: NonNullable<LogCase['asked']>, ...known: readonly string[]): LogCase {
  return { ...one, asked, known };
}

/** @param document one that the vectors take for authentic, of testBoot(3) */
export function knownCases(document: Buffer): LogCase[] {
  const test = testBoot(3, document);
  const genuine = makeLog(test, 3, PLAN);
  const forged = encodeEntry({ ...testEntry(3, 0), signingRoot: Buffer.from(STOLEN, 'hex') });
  const behind = { ...genuine, entries: [...genuine.entries, forged] };
  const own = testBoot(9);
  const beside = makeLog(own, 9, {
    ...{ sizes: [1], startSeconds: 3600, before: naming(genuine.heads.at(-1) ?? '') },
    entry: () => forged,
  });
  const withoutEnd: MadeLog = { ...genuine, heads: genuine.heads.slice(0, 3) };
  const first: MadeLog = { ...behind, heads: genuine.heads.slice(0, 1) };
  const open = makeLog(test, 3, { ...PLAN, closed: false });
  const lossy = makeLog(test, 3, { ...PLAN, change: withStatement({ lost: 2 }, 4) });
  const known = (index: number, head: number, outcome = 'signed') =>
    `${rootOf(index)} ${outcome} ${test.boot} ${index} ${head} attested`;
  const roots = [2, 3, 7, 9, 11].map(rootOf);
  return [
    asking(
      withFaults('entries, and the first heads that cover them', [genuine], []),
      { roots },
      ...[known(2, 1), known(3, 2), known(7, 4), known(9, 4, 'double_vote'), known(11, 4)],
    ),
    asking(withFaults('nothing that is asked for', [genuine], []), { roots: [STOLEN] }),
    asking(withFaults('an entry behind the last head', [behind], ['uncovered_entries']), { roots: [STOLEN] }),
    asking(withFaults('an entry behind the last head, which is after the span', [behind], []), {
      ...SPAN,
      roots: [STOLEN],
    }),
    asking(
      withFaults('entries behind the last head that is there', [withoutEnd], ['open_end', 'uncovered_entries']),
      { roots: [rootOf(2), rootOf(7)] },
      known(2, 1),
    ),
    asking(withFaults('entries in no head', [first], ['open_end', 'uncovered_entries']), {
      roots: [...roots, STOLEN],
    }),
    asking(withFaults('an entry beside, in a log that nobody attests', [genuine, beside], ['unattested']), {
      roots: [STOLEN],
    }),
    asking(withFaults('an entry beside, in a log after the span that nobody attests', [genuine, beside], []), {
      ...SPAN,
      roots: [STOLEN],
    }),
    asking(
      withFaults(
        'an entry beside, after the span, which counts by the word of the auditor',
        [genuine, beside],
        ['unattested'],
      ),
      { ...SPAN, roots: [STOLEN], unattested: true },
      `${STOLEN} signed ${own.boot} 0 1 unattested`,
    ),
    asking(
      withFaults('logs that nobody attests, after the span, in which nothing was found', [genuine, beside], []),
      { ...SPAN, roots: [rootOf(2)], unattested: true },
      known(2, 1),
    ),
    asking(
      withFaults('an entry of a boot before the span, which lost others', [lossy], ['lost']),
      { ...LATER, roots: [rootOf(2)] },
      known(2, 1),
    ),
    asking(
      withFaults('an entry of the span, in a log without an end that goes on after it', [open], []),
      { ...SPAN, roots: [rootOf(2)] },
      known(2, 1),
    ),
    asking(
      withFaults('an entry after the span, in a log without an end', [open], ['open_end']),
      { from: START_MS, to: START_MS + 2, roots: [rootOf(2)] },
      known(2, 1),
    ),
    asking(
      withFaults('an entry after the span, before what no head covers', [behind], ['uncovered_entries']),
      { from: START_MS, to: START_MS + 2, roots: [rootOf(2)] },
      known(2, 1),
    ),
    asking(withFaults('a boot before the span, which lost entries that nobody asks for', [lossy], []), {
      ...LATER,
      roots: [STOLEN],
    }),
    asking(
      withFaults(
        'an entry in a log that is broken',
        [{ ...written(genuine), heads: genuine.heads.toSpliced(2, 1) }],
        ['missing_head'],
      ),
      { roots },
    ),
    asking(
      withFaults(
        'an entry of a boot whose document is another one',
        [makeLog(testBoot(4, document), 3, PLAN)],
        ['not_attested'],
      ),
      { roots, unattested: true },
    ),
    ...begins(document),
  ];
}

/** Boots of which the earliest ones are not there, as the first heads of the others say. */
function begins(document: Buffer): LogCase[] {
  const absent = 'ab'.repeat(32);
  const nameless = (log: MadeLog): MadeLog => ({ ...log, heads: log.heads.slice(1) });
  const begin = makeLog(testBoot(1), 1, { ...PLAN, before: { heads: [absent], gap: null } });
  const last = (log: MadeLog) => log.heads.at(-1) ?? '';
  const second = makeLog(testBoot(3, document), 3, { ...PLAN, startSeconds: 400, before: naming(last(begin)) });
  const heads = [absent, ...naming(last(begin), last(second)).heads].toSorted();
  const third = makeLog(testBoot(4, document), 3, { ...PLAN, startSeconds: 800, before: { heads, gap: null } });
  // By its name the first of the two is the earlier one.
  const [lower, higher] = [testBoot(1), testBoot(2)].toSorted((one, two) => (one.boot < two.boot ? -1 : 1));
  const atOnce = [
    makeLog(lower ?? testBoot(1), 1, PLAN),
    makeLog(higher ?? testBoot(2), 2, { ...PLAN, before: { heads: [absent], gap: null } }),
  ];
  const other = makeLog(testBoot(2), 2, { ...PLAN, startSeconds: 400, before: naming(last(begin)) });
  return [
    withFaults(
      'a boot whose first head is not there, and one that names it',
      [nameless(begin), other],
      [...['missing_head', 'unattested']],
    ),
    {
      ...withFaults('the earliest boot is not there, in a span after all', [other], ['unlisted']),
      asked: { from: START_MS + 86_400_000 },
    },
    ...[atOnce, atOnce.toReversed()].map((logs, index) =>
      withFaults(`two boots that began at once, of which one names what is not there: order ${index + 1}`, logs, [
        ...['unattested', 'unknown_head'],
      ]),
    ),
    withFaults(
      'a plain service names what the first boot of an enclave does not',
      [begin, second, third],
      [...['not_attested', 'unattested', 'unknown_head', 'unlisted']],
    ),
  ];
}
