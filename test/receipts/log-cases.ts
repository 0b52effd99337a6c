// The logs of the test vectors (specification/receipts.md#checks): each rule has a case that breaks it, and states
// what a verifier finds then. Nothing in them is random.

import type { HeadStatement, LogHead } from '../../common/receipts/head.ts';
import { encodeIdentity, identityBinding } from '../../common/receipts/identity.ts';
import { encodeEntry } from './encode-entry.ts';
import { digestOf, type MadeLog, makeLog, naming, resigned, testBoot, testEntry } from './logs.ts';

/** An entry, or the hash of one that is not at hand, in base64. */
export type WrittenEntry = string | { readonly hash: string };

export interface WrittenBoot {
  readonly identity: string;
  readonly heads: readonly string[];
  readonly entries: readonly WrittenEntry[] | null;
}

export interface LogCase {
  readonly name: string;
  readonly boots: readonly WrittenBoot[];
  readonly verdict: string;
  readonly faults: readonly string[];
  /** A span and the auditor's word, in milliseconds since 1970; and signing roots that are looked for. */
  readonly asked?: Readonly<
    Partial<Record<'from' | 'to' | 'removable', number>> & { unattested?: boolean; roots?: readonly string[] }
  >;
  /** What is known of entries with these roots, as knownLine() has it. */
  readonly known?: readonly string[];
}

export function written({ identity, heads, entries }: MadeLog): WrittenBoot {
  return { identity, heads, entries: entries.map((entry) => entry.toString('base64')) };
}

export function stated(name: string, boots: readonly (MadeLog | WrittenBoot)[], ...faults: string[]): LogCase {
  const all = ['unattested', ...faults].toSorted();
  return withFaults(name, boots, all);
}

export function withFaults(
  name: string,
  boots: readonly (MadeLog | WrittenBoot)[],
  faults: readonly string[],
): LogCase {
  const gaps = [
    'unattested',
    'no_entries',
    'removed_by_retention',
    'uncovered_entries',
    'open_end',
    'lost',
    'unlinked',
    'unlisted',
  ];
  const verdict = faults.length === 0 ? 'whole' : faults.every((fault) => gaps.includes(fault)) ? 'gaps' : 'broken';
  return { name, boots: boots.map((boot) => ('test' in boot ? written(boot) : boot)), verdict, faults };
}

function swapped<T>(list: readonly T[], one: number, other: number): T[] {
  const copy = [...list];
  [copy[one], copy[other]] = [list[other] as T, list[one] as T];
  return copy;
}

export function withStatement(change: Partial<HeadStatement>, sequence: number): (head: LogHead) => LogHead {
  return (head) =>
    head.statement.sequence === sequence ? { ...head, statement: { ...head.statement, ...change } } : head;
}

const at = (list: readonly string[], index: number): string => list.at(index) ?? '';

export function logCases(): LogCase[] {
  const boot = testBoot(1);
  const later = testBoot(2);
  const plan = { sizes: [3, 7, 7, 12], startSeconds: 0 };
  const one = makeLog(boot, 1, plan);
  const plain = written(one);
  const lines = plain.entries ?? [];
  const changed = (change: (head: LogHead) => LogHead) => makeLog(boot, 1, { ...plan, change });
  const secondHead = (change: (head: LogHead) => LogHead): MadeLog => ({
    ...one,
    heads: one.heads.map((note, index) => (index === 1 ? resigned(note, boot, change) : note)),
  });
  const open = makeLog(boot, 1, { ...plan, closed: false });
  const next = (before: HeadStatement['before'], startSeconds = 400) =>
    makeLog(later, 2, { sizes: [2], startSeconds, before });
  const forged = encodeEntry(testEntry(9, 2)).toString('base64');
  const chained = chainOf(Array.from({ length: 18 }, (_, index) => testBoot(10 + index)));
  const after = (named: number) =>
    makeLog(later, 2, { sizes: [2], startSeconds: 4000, before: naming(...chained.slice(-named).map(lastOf)) });
  return [
    stated('one boot', [one]),
    stated('heads in another order, and one twice', [
      { ...plain, heads: [...plain.heads.toReversed(), at(plain.heads, 1)] },
    ]),
    stated('no entries at hand', [{ ...plain, entries: null }], 'no_entries'),
    stated('no entries at hand, and none to have', [
      { ...written(makeLog(boot, 1, { ...plan, sizes: [0] })), entries: null },
    ]),
    stated('a forged entry', [{ ...plain, entries: lines.with(2, forged) }], 'other_root'),
    stated('an entry that lacks', [{ ...plain, entries: lines.toSpliced(4, 1) }], 'missing_entries', 'other_root'),
    stated('the last entry lacks', [{ ...plain, entries: lines.slice(0, -1) }], 'missing_entries'),
    stated(
      'an entry twice',
      [{ ...plain, entries: lines.toSpliced(5, 0, lines[5] ?? '') }],
      'other_root',
      'uncovered_entries',
    ),
    stated('two entries in the other order', [{ ...plain, entries: swapped(lines, 8, 9) }], 'other_root'),
    stated('an entry behind the last head', [{ ...plain, entries: [...lines, forged] }], 'uncovered_entries'),
    stated(
      'an entry of another form',
      [makeLog(boot, 1, { ...plan, entry: (index, bytes) => (index === 6 ? bytes.subarray(1) : bytes) })],
      'malformed_entry',
    ),
    stated('no head', [{ ...plain, heads: [] }], 'missing_head', 'uncovered_entries'),
    stated('the first head lacks', [{ ...plain, heads: plain.heads.slice(1) }], 'missing_head'),
    stated('a head in the middle lacks', [{ ...plain, heads: plain.heads.toSpliced(2, 1) }], 'missing_head'),
    stated('no end', [open], 'open_end'),
    stated('decisions that were lost', [changed(withStatement({ lost: 3 }, 4))], 'lost'),
    stated('less lost than before', [changed(withStatement({ lost: 1 }, 2))], 'went_back'),
    stated('time goes back', [changed(withStatement({ time: 1 }, 2))], 'went_back'),
    stated(
      'the time of the last head goes back behind the first',
      [changed(withStatement({ time: 1 }, 4))],
      'went_back',
    ),
    stated('a head after the last', [changed(withStatement({ closed: true }, 2))], 'after_end'),
    stated(
      'a smaller tree than before',
      [{ ...plain, heads: makeLog(boot, 1, { ...plan, change: shrunk }).heads }],
      'other_root',
      'went_back',
    ),
    stated('another head before', [changed(withStatement({ previous: 'ab'.repeat(32) }, 2))], 'broken_chain'),
    stated(
      'two logs: two heads of one sequence',
      [{ ...plain, heads: [...plain.heads, at(makeLog(boot, 5, plan).heads, 2)] }],
      'two_logs',
    ),
    stated(
      'two logs: a kept head of another time',
      [{ ...plain, heads: [...plain.heads, at(changed(withStatement({ time: 1_795_608_121_000 }, 2)).heads, 2)] }],
      'two_logs',
    ),
    stated('a boot twice', [one, one], 'two_logs'),
    stated(
      'a kept head that the log has not',
      [{ ...plain, heads: [...plain.heads.slice(0, 2), at(plain.heads, 4)] }],
      'missing_head',
    ),
    stated(
      'heads are withheld that a kept one follows',
      [{ ...plain, heads: plain.heads.toSpliced(3, 1), entries: lines.slice(0, 7) }],
      'missing_entries',
      'missing_head',
    ),
    stated(
      'another root is signed',
      [secondHead((head) => ({ ...head, root: Buffer.alloc(32, 1) }))],
      'broken_chain',
      'other_root',
    ),
    stated(
      'a head of another boot',
      [{ ...plain, heads: [...plain.heads, at(next(naming()).heads, 0)] }],
      'other_boot',
    ),
    stated(
      'a head that calls itself attested',
      [
        {
          ...plain,
          heads: [...plain.heads, resigned(at(plain.heads, 4), boot, (head) => ({ ...head, kind: 'attested' }))],
        },
      ],
      'other_boot',
    ),
    stated(
      'a head that another key signed',
      [
        {
          ...plain,
          heads: plain.heads.with(
            4,
            resigned(at(plain.heads, 4), later, (head) => head),
          ),
        },
      ],
      'bad_signature',
      'open_end',
      'uncovered_entries',
    ),
    stated(
      'a signature of other text',
      [{ ...plain, heads: plain.heads.with(4, at(plain.heads, 4).replace(/(\n— \S+ \S{20})\S/, '$1x')) }],
      'bad_signature',
      'open_end',
      'uncovered_entries',
    ),
    stated(
      'two signatures of the boot',
      [{ ...plain, heads: plain.heads.with(4, `${at(plain.heads, 4)}${at(plain.heads, 4).split('\n\n')[1]}`) }],
      'bad_signature',
      'open_end',
      'uncovered_entries',
    ),
    stated('a cosignature of a witness', [
      { ...plain, heads: plain.heads.with(4, `${at(plain.heads, 4)}— witness.example AAAAAAAA\n`) },
    ]),
    ...[
      ['17 signatures', (note: string) => note + '— witness.example AAAAAAAA\n'.repeat(16)],
      ['no LF at the end', (note: string) => note.slice(0, -1)],
      ['a blank in the line of JSON', (note: string) => note.replace('{"version"', '{ "version"')],
      ['a member twice', (note: string) => note.replace('"lost":0', '"lost":0,"lost":0')],
      ['a member more', (note: string) => note.replace('"lost":0', '"lost":0,"more":0')],
      ['another version', (note: string) => note.replace('"version":1', '"version":2')],
      ['a number with a point', (note: string) => note.replace('"lost":0', '"lost":0.0')],
      ['a size with a zero before', (note: string) => note.replace('\n12\n', '\n012\n')],
      ['a size above 2^53 - 1', (note: string) => note.replace('\n12\n', '\n9007199254740992\n')],
      ['a second extension line', (note: string) => note.replace('\n{', '\nmore\n{')],
      ['an upper-case boot', (note: string) => note.replace(boot.boot, boot.boot.toUpperCase())],
      ['a signature of another spelling', (note: string) => `${note}— witness.example AAAAAAB=\n`],
      ['a name with a plus', (note: string) => `${note}— wit+ness AAAAAAAA\n`],
      ['a store with a blank', (note: string) => note.replace('sqlite:5f1c', 'sqlite 5f1c')],
      ['another latch', (note: string) => note.replace('"latch":null', '"latch":"shut"')],
      ['before in a later head', (note: string) => note.replace('"before":null', '"before":{"heads":[],"gap":null}')],
      ['no previous in a later head', (note: string) => note.replace(/"previous":"\w+"/, '"previous":null')],
      ['a time after the year 9999', (note: string) => note.replace(/"time":\d+/, '"time":253402300800000')],
    ].map(([name, change]) =>
      stated(
        `a head of another form: ${String(name)}`,
        [{ ...plain, heads: plain.heads.with(4, (change as (note: string) => string)(at(plain.heads, 4))) }],
        ...['malformed_head', 'open_end', 'uncovered_entries'],
      ),
    ),
    stated('a restart', [one, next(naming(at(one.heads, -1)))]),
    stated('a restart after a crash', [open, next(naming(at(open.heads, -1)))], 'open_end'),
    stated('a restart that could not read', [one, next({ heads: [], gap: 'unreadable' })], 'unlinked'),
    stated('a restart with a table rolled back', [one, next(naming(at(one.heads, 2)))], 'rolled_back'),
    stated('a restart that saw nothing', [one, next(naming())], 'not_named'),
    stated('boots of which the earliest is not there', [next(naming(at(one.heads, -1)))], 'unlisted'),
    stated('a boot in the middle is not there', withoutMiddle(chained.slice(0, 9)), 'unknown_head'),
    stated('the two earliest of 18 boots are not there', chained.slice(2), 'unlisted'),
    stated(
      'a first head that names itself',
      [one, next({ heads: ['ab'.repeat(32)], gap: null })],
      'not_named',
      'unknown_head',
    ),
    disordered(one, later),
    stated('a replica that ran on', [one, next(naming(at(one.heads, 2)), 150)]),
    stated('a replica that ran on, and made a head meanwhile', [one, next(naming(at(one.heads, 2)), 181)]),
    stated(
      'a replica that ran on, of which an old head is named',
      [one, next(naming(at(one.heads, 1)), 181)],
      'rolled_back',
    ),
    stated('a replica that began just before', [one, next(naming(), 20)]),
    stated('a replica that began before', [one, next(naming(), 31)], 'not_named'),
    stated('18 boots, of which each names the 16 before', chained),
    stated('18 boots, and one that names only 15', [...chained, after(15)], 'not_named'),
    ...identityCases(plain),
  ];
}

const withoutMiddle = (logs: readonly MadeLog[]): MadeLog[] => logs.toSpliced(5, 1);

const lastOf = ({ heads }: MadeLog): string => at(heads, -1);

function shrunk(head: LogHead): LogHead {
  return head.statement.sequence === 2 ? { ...head, size: 2 } : head;
}

function disordered(one: MadeLog, later: ReturnType<typeof testBoot>): LogCase {
  const heads = ['cd'.repeat(32), digestOf(lastOf(one))].toSorted();
  const made = makeLog(later, 2, { sizes: [2], startSeconds: 400, before: { heads, gap: null } });
  const text = JSON.stringify(heads);
  const notes = made.heads.map((note) => note.replace(text, JSON.stringify(heads.toReversed())));
  return stated(
    'named heads in descending order',
    [one, { ...written(made), heads: notes }],
    'malformed_head',
    'missing_head',
  );
}

/** Each names those before it, as signers do. */
function chainOf(tests: readonly ReturnType<typeof testBoot>[]): MadeLog[] {
  const logs: MadeLog[] = [];
  for (const [index, test] of tests.entries()) {
    const before = naming(...logs.slice(-16).map(lastOf));
    logs.push(makeLog(test, 3, { sizes: [1], startSeconds: index * 100, before }));
  }
  return logs;
}

function identityCases(plain: WrittenBoot): LogCase[] {
  const changes: readonly (readonly [string, (text: string) => string])[] = [
    ['not JSON', () => '{'],
    ['a blank', (text) => text.replace(',', ', ')],
    ['another version', (text) => text.replace('"version":1', '"version":2')],
    ['a shorter key', (text) => text.replace(/"public_key":"[^"]+"/, '"public_key":"AAAA"')],
    ['a root of the network without 0x', (text) => text.replace('"0x', '"')],
    ['attested without a document', (text) => text.replace('unattested', 'attested')],
    ['unattested with a document', (text) => text.replace('"document":null', '"document":"AAAA"')],
    ['a member more', (text) => text.replace('}', ',"more":1}')],
    ['an empty document', (text) => text.replace('unattested', 'attested').replace(':null', ':""')],
  ];
  return changes.map(([name, change]) => {
    const identity = change(plain.identity);
    return withFaults(`an identity of another form: ${name}`, [{ ...plain, identity }], ['malformed_identity']);
  });
}

export const DOCUMENT: Buffer = Buffer.from('a document that the vectors take for authentic');

/** Two tables: documents that a verifier takes for authentic and expected, and the cases. */
export function attestedLogs(): { documents: Record<string, string>; logs: LogCase[] } {
  const test = testBoot(3, DOCUMENT);
  const log = makeLog(test, 3, { sizes: [4], startSeconds: 0 });
  const other = makeLog(testBoot(3, Buffer.from('another document')), 3, { sizes: [4], startSeconds: 0 });
  const stolen = makeLog(testBoot(4, DOCUMENT), 3, { sizes: [4], startSeconds: 0 });
  const network = {
    ...written(log),
    identity: encodeIdentity({ ...test.identity, genesisValidatorsRoot: `0x${'00'.repeat(32)}` }),
  };
  return {
    documents: { [DOCUMENT.toString('base64')]: identityBinding(test.identity).toString('hex') },
    logs: [
      withFaults('an attested boot', [log], []),
      withFaults('a document that is not authentic', [other], ['not_attested']),
      withFaults('a document of another boot', [stolen], ['not_attested']),
      withFaults('a document of another network', [network], ['not_attested']),
    ],
  };
}
