// Logs of which entries were removed, and audits of a span of time, for the test vectors
// (specification/receipts.md#retention, #span): what may be gone, by whose word, and which gaps are of a span.

import { leafHash } from '../../common/receipts/tree.ts';
import { type LogCase, stated, type WrittenBoot, withFaults, withStatement, written } from './log-cases.ts';
import { type MadeLog, makeLog, naming, START_MS, testBoot } from './logs.ts';

const HOUR = 3600;
/** Heads after 0, 12, 24, 36 and 48 hours: after one day the seven entries of the first day may go. */
const PLAN = { sizes: [3, 7, 9, 12], startSeconds: 0, intervalSeconds: 12 * HOUR } as const;
const REMOVABLE = 7;
const WEEK = 7 * 24 * HOUR;
const msAfter = (hours: number): number => START_MS + hours * HOUR * 1000;

const lastOf = ({ heads }: MadeLog): string => heads.at(-1) ?? '';

/** With these entries given by their hashes. */
function without(log: MadeLog, ...indexes: readonly number[]): WrittenBoot {
  const hashOf = (index: number) => ({ hash: leafHash(log.entries[index] ?? Buffer.alloc(0)).toString('base64') });
  return {
    ...written(log),
    entries: written(log).entries?.map((one, at) => (indexes.includes(at) ? hashOf(at) : one)) ?? null,
  };
}

const firstOnes = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** @param document one that the vectors take for authentic, of testBoot(3) */
export function retentionCases(document: Buffer): LogCase[] {
  const boot = testBoot(1);
  const kept = makeLog(boot, 1, { ...PLAN, retentionDays: 1 });
  const plain = makeLog(boot, 1, PLAN);
  const days = (count: number) => makeLog(boot, 1, { ...PLAN, retentionDays: count });
  const later = (test: ReturnType<typeof testBoot>, log = plain, startSeconds = WEEK) =>
    makeLog(test, 3, { sizes: [2], startSeconds, before: naming(lastOf(log)), retentionDays: 1 });
  const attested = testBoot(3, document);
  const ofImage = makeLog(attested, 1, PLAN);
  const old = without(makeLog(attested, 1, { ...PLAN, retentionDays: 1 }), 0);
  const rootOf = (index: number): string => Buffer.alloc(32, index).toString('hex');
  const forged = without(kept, ...firstOnes(REMOVABLE));
  const unsigned = (text: string) => ({
    ...written(plain),
    heads: plain.heads.with(4, lastOf(plain).replace('"retention_days":null', text)),
  });
  return [
    stated('entries that are old enough are removed', [without(kept, ...firstOnes(REMOVABLE))], 'removed_by_retention'),
    {
      ...withFaults('an entry before the span is found, and one before it is removed', [old], ['removed_by_retention']),
      asked: { from: msAfter(37), roots: [rootOf(8)] },
      known: [`${rootOf(8)} signed ${attested.boot} 8 3 attested`],
    },
    {
      ...withFaults('an entry before the span is removed, and one of the span is found', [old], []),
      asked: { from: msAfter(37), roots: [rootOf(10)] },
      known: [`${rootOf(10)} signed ${attested.boot} 10 4 attested`],
    },
    stated('the oldest entry is removed', [without(kept, 0)], 'removed_by_retention'),
    stated('the last entry that may be is removed', [without(kept, REMOVABLE - 1)], 'removed_by_retention'),
    stated('an entry is withheld under the pretext of retention', [without(kept, REMOVABLE)], 'missing_entries'),
    stated(
      'entries are removed, and one more is withheld',
      [without(kept, ...firstOnes(REMOVABLE + 1))],
      ...['missing_entries', 'removed_by_retention'],
    ),
    stated('an entry is withheld, and no head speaks of retention', [without(plain, 0)], 'missing_entries'),
    stated(
      'an entry is withheld one millisecond before it may be removed',
      [
        without(
          makeLog(boot, 1, { ...PLAN, retentionDays: 1, change: withStatement({ time: msAfter(24) + 1 }, 2) }),
          3,
        ),
      ],
      'missing_entries',
    ),
    stated('an entry is withheld on the last day that it is kept', [without(days(2), 0)], 'missing_entries'),
    stated(
      'the hash of a removed entry is forged',
      [{ ...forged, entries: forged.entries?.with(2, { hash: Buffer.alloc(32).toString('base64') }) ?? null }],
      ...['other_root', 'removed_by_retention'],
    ),
    stated(
      'an entry is withheld, and a later boot that nobody attests speaks of retention',
      [without(plain, 0), later(testBoot(2))],
      'missing_entries',
    ),
    stated(
      'entries are removed by an attested boot that came later',
      [without(plain, ...firstOnes(12)), later(attested)],
      'removed_by_retention',
    ),
    stated(
      'an entry is withheld that an attested boot keeps',
      [without(plain, REMOVABLE), later(attested, plain, 47 * HOUR)],
      'missing_entries',
    ),
    stated(
      'an entry is withheld by a boot whose document is of another one',
      [without(plain, 0), later(testBoot(4, document))],
      ...['missing_entries', 'not_attested'],
    ),
    stated(
      'an entry of an attested boot is withheld by one that nobody attests',
      [without(ofImage, 0), later(testBoot(2), ofImage)],
      'missing_entries',
    ),
    {
      ...stated(
        'entries are removed, as the auditor knows',
        [without(plain, ...firstOnes(REMOVABLE))],
        'removed_by_retention',
      ),
      asked: { removable: msAfter(24) },
    },
    {
      ...stated(
        'an entry is withheld of which the auditor knows nothing',
        [without(plain, REMOVABLE - 1)],
        'missing_entries',
      ),
      asked: { removable: msAfter(24) - 1 },
    },
    stated('the longest retention', [days(3650)]),
    ...[
      ['no day', '"retention_days":0'],
      ['more days than there may be', '"retention_days":3651'],
      ['days that are true', '"retention_days":true'],
      ['no retention', '"retention":null'],
    ].map(([name, text = '']) =>
      stated(
        `a head of another form: ${name}`,
        [unsigned(text)],
        ...['malformed_head', 'open_end', 'uncovered_entries'],
      ),
    ),
    ...spanCases(kept),
  ];
}

/** Of a log from hour 0 to hour 48. */
function spanCases(kept: MadeLog): LogCase[] {
  const boot = testBoot(1);
  const open = makeLog(boot, 1, { ...PLAN, closed: false });
  const lost = makeLog(boot, 1, { ...PLAN, change: withStatement({ lost: 1 }, 4) });
  const unlinked = makeLog(boot, 1, { ...PLAN, before: { heads: [], gap: 'unreadable' } });
  const plain = written(makeLog(boot, 1, PLAN));
  const removed = without(kept, ...firstOnes(REMOVABLE));
  const none = { ...plain, entries: null };
  const more = { ...plain, entries: [...(plain.entries ?? []), plain.entries?.[0] ?? ''] };
  const forged = { ...plain, entries: plain.entries?.with(2, plain.entries[3] ?? '') ?? null };
  const of = (name: string, log: MadeLog | WrittenBoot, asked: LogCase['asked'], ...faults: string[]): LogCase => ({
    ...withFaults(`a span ${name}`, [log], faults.toSorted()),
    asked: asked ?? {},
  });
  const [before, after] = [{ to: msAfter(0) }, { from: msAfter(48) + 1 }];
  return [
    of('before the log', plain, before),
    of('that ends when the log begins', plain, { to: msAfter(0) + 1 }, 'unattested'),
    of('after the log', plain, after),
    of('that begins when the log ends', plain, { from: msAfter(48) }, 'unattested'),
    of('after a log whose entries are not at hand', none, after),
    of('before a log whose entries are not at hand', none, before),
    of('of a log whose entries are not at hand', none, { from: msAfter(48) }, 'no_entries', 'unattested'),
    of('after a log with lost decisions', lost, after),
    of('after a log without an end', open, after, 'open_end'),
    of('before a log without an end', open, before),
    of('within a log without an end', open, { to: msAfter(48) }, 'unattested'),
    of('up to the end of a log without one', open, { to: msAfter(48) + 1 }, 'open_end', 'unattested'),
    of('after a log with entries that no head covers', more, after, 'uncovered_entries'),
    of('before a log with entries that no head covers', more, before),
    of('after a log that names no earlier one', unlinked, after, 'unlinked'),
    of('before a log that names no earlier one', unlinked, before, 'unlinked'),
    of('after a forged log', forged, after, 'other_root'),
    of('of an identity of another form', { ...plain, identity: '{' }, after, 'malformed_identity'),
    of('of a log without heads', { ...plain, heads: [] }, after, 'missing_head', 'unattested', 'uncovered_entries'),
    of('after a removal', removed, after),
    of('that begins behind what was removed', removed, { from: msAfter(24) + 1 }, 'unattested'),
    of('that begins with what was removed', removed, { from: msAfter(24) }, 'removed_by_retention', 'unattested'),
    of('after an entry that is withheld', without(kept, REMOVABLE), after, 'missing_entries'),
  ];
}
