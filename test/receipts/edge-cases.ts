// Logs at the edges of the rules, one that is still right and one past it, for the test vectors: what a verifier that
// lacks a check, or has a limit that is one more or less, judges otherwise (mutants.py). Apart from log-cases.ts, whose
// logs break one rule each.

import type { HeadStatement, LogHead } from '../../common/receipts/head.ts';
import { encodeIdentity } from '../../common/receipts/identity.ts';
import { type LogCase, stated, withFaults, withStatement, written } from './log-cases.ts';
import { digestOf, type MadeLog, makeLog, naming, testBoot } from './logs.ts';

type Change = readonly [name: string, change: (note: string) => string];

const PLAN = { sizes: [3, 7, 7, 12], startSeconds: 0 } as const;
const MAX_TIME = 253_402_300_799_999;
const MAX_HEAD_BYTES = 8192;
const MAX_DOCUMENT_BYTES = 12_288;

const at = (list: readonly string[], index: number): string => list.at(index) ?? '';

export function edgeCases(): LogCase[] {
  return [...headCases(), ...signatureCases(), ...restartCases(), ...identityCases()];
}

function headCases(): LogCase[] {
  const boot = testBoot(1);
  const one = makeLog(boot, 1, PLAN);
  const plain = written(one);
  const last = (change: Partial<HeadStatement>) => makeLog(boot, 1, { ...PLAN, change: withStatement(change, 4) });
  const largest = (head: LogHead): LogHead =>
    head.statement.sequence === 4 ? { ...head, size: Number.MAX_SAFE_INTEGER } : head;
  const later: readonly Change[] = [
    ['a version that is true', (note) => note.replace('"version":1', '"version":true')],
    ['lost is true', (note) => note.replace('"lost":0', '"lost":true')],
    ['lost below 0', (note) => note.replace('"lost":0', '"lost":-1')],
    ['lost above 2^53 - 1', (note) => note.replace('"lost":0', '"lost":9007199254740992')],
    ['a sequence below 0', (note) => note.replace('"sequence":4', '"sequence":-1')],
    ['a digest that is a number', (note) => note.replace(/"previous":"\w+"/, '"previous":5')],
    ['closed is a number', (note) => note.replace('"closed":true', '"closed":1')],
    ['a store without members', (note) => note.replace(/"slashing":\{[^}]*\}/, '"slashing":{}')],
    ['a revision of the table below 0', (note) => note.replace('"auth_revision":null', '"auth_revision":-1')],
    ['a root of 31 bytes', (note) => note.replace(/\n[^\n]{44}\n/, `\n${Buffer.alloc(31).toString('base64')}\n`)],
    ['no signature', (note) => `${at(note.split('\n\n'), 0)}\n\n`],
    ['no empty line', (note) => `${at(note.split('\n\n'), 0)}\n`],
    ['one byte more than a head may have', (note) => padded(note, MAX_HEAD_BYTES + 1)],
  ];
  const first: readonly Change[] = [
    ['previous in the first head', (note) => note.replace('"previous":null', `"previous":"${'ab'.repeat(32)}"`)],
    ['no before in the first head', (note) => note.replace(/"before":\{[^}]*\}/, '"before":null')],
    ['before is a number', (note) => note.replace(/"before":\{[^}]*\}/, '"before":5')],
    ['17 heads before', (note) => naming17(note)],
    ['a head before that is no digest', (note) => note.replace('"heads":[]', '"heads":["xyz"]')],
    [
      'a head before twice',
      (note) => note.replace('"heads":[]', `"heads":["${'ab'.repeat(32)}","${'ab'.repeat(32)}"]`),
    ],
    ['another gap', (note) => note.replace('"gap":null', '"gap":"other"')],
    [
      'a gap and a head',
      (note) => note.replace('"heads":[],"gap":null', `"heads":["${'ab'.repeat(32)}"],"gap":"unreadable"`),
    ],
  ];
  return [
    stated('the last time that there is', [last({ time: MAX_TIME })]),
    stated('as much lost as there can be', [last({ lost: Number.MAX_SAFE_INTEGER })], 'lost'),
    stated('one decision that was lost', [last({ lost: 1 })], 'lost'),
    stated('no slashing store', [last({ slashing: null })]),
    stated('a state table that is open', [last({ latch: 'open', auth_revision: 0 })]),
    stated('a state table that is sealed', [last({ latch: 'sealed', auth_revision: Number.MAX_SAFE_INTEGER })]),
    stated('the largest size', [makeLog(boot, 1, { ...PLAN, change: largest })], 'missing_entries'),
    stated(
      'one entry that is not at hand',
      [{ ...written(makeLog(boot, 1, { ...PLAN, sizes: [1] })), entries: null }],
      'no_entries',
    ),
    stated('as many bytes as a head may have', [
      { ...plain, heads: plain.heads.with(4, padded(at(plain.heads, 4), MAX_HEAD_BYTES)) },
    ]),
    ...later.map(([name, change]) =>
      stated(
        `a head of another form: ${name}`,
        [{ ...plain, heads: plain.heads.with(4, change(at(plain.heads, 4))) }],
        ...['malformed_head', 'open_end', 'uncovered_entries'],
      ),
    ),
    ...first.map(([name, change]) =>
      stated(
        `a first head of another form: ${name}`,
        [{ ...plain, heads: plain.heads.with(0, change(at(plain.heads, 0))) }],
        ...['malformed_head', 'missing_head'],
      ),
    ),
  ];
}

/** With a line of a witness, up to so many bytes. */
function padded(note: string, bytes: number): string {
  const line = (count: number): string => `— witness.${'w'.repeat(count)} AAAAAAAA\n`;
  return note + line(bytes - Buffer.byteLength(note) - Buffer.byteLength(line(0)));
}

function naming17(note: string): string {
  const digests = Array.from({ length: 17 }, (_, index) => `"${index.toString(16).padStart(64, '0')}"`);
  return note.replace('"heads":[]', `"heads":[${digests.join(',')}]`);
}

function signatureCases(): LogCase[] {
  const plain = written(makeLog(testBoot(1), 1, PLAN));
  const head = at(plain.heads, 4);
  const [, origin = '', signed = ''] = /\n— (\S+) (\S+)\n$/.exec(head) ?? [];
  const bytes = Buffer.from(signed, 'base64');
  const withLast = (note: string) => [{ ...plain, heads: plain.heads.with(4, note) }];
  const other = Buffer.from(bytes).fill(0, 0, 4);
  const short = head.replace(signed, bytes.subarray(0, -1).toString('base64'));
  return [
    stated('16 signatures', withLast(head + '— witness.example AAAAAAAA\n'.repeat(15))),
    stated('a witness with our key hash', withLast(`${head}— witness.example ${signed}\n`)),
    stated('our name with another key hash', withLast(`${head}— ${origin} ${other.toString('base64')}\n`)),
    stated('a signature of 63 bytes', withLast(short), 'bad_signature', 'open_end', 'uncovered_entries'),
  ];
}

function restartCases(): LogCase[] {
  const boot = testBoot(1);
  const one = makeLog(boot, 1, PLAN);
  const next = (before: HeadStatement['before'], startSeconds: number): MadeLog =>
    makeLog(testBoot(2), 2, { sizes: [2], startSeconds, before });
  const only = makeLog(boot, 1, { sizes: [], startSeconds: 0, closed: false });
  const named = (index: number) => naming(at(one.heads, index));
  return [
    stated(
      'a boot without heads, and another',
      [{ ...written(one), heads: [], entries: [] }, next(naming(), 400)],
      'missing_head',
    ),
    ...seventeenAtOnce(),
    stated('two boots that began at once', [one, next(naming(), 0)]),
    stated('a replica whose last head is of the time of the start', [one, next(named(3), 240)]),
    stated('a boot that had ended, of which not the last head is named', [one, next(named(3), 240.001)], 'rolled_back'),
    stated(
      'a boot that had ended just before, of which not the last head is named',
      [one, next(named(3), 250)],
      'rolled_back',
    ),
    stated('a head that was there for less than 30 s', [one, next(named(1), 149.999)]),
    stated('a head that was there for 30 s', [one, next(named(1), 150)], 'rolled_back'),
    stated('a replica that began less than 30 s before', [one, next(naming(), 29.999)]),
    stated('a replica that began 30 s before', [one, next(naming(), 30)], 'not_named'),
    stated('a boot that began and ended just before', [only, next(naming(), 10)], 'not_named', 'open_end'),
    stated('a boot that is named by its only head', [only, next(naming(digestNote(only)), 10)], 'open_end'),
  ];
}

/** Of 17 boots with a last head at one time, a later one names 16: by the order of their names. */
function seventeenAtOnce(): LogCase[] {
  const tests = Array.from({ length: 17 }, (_, index) => testBoot(60 + index));
  const byName = tests.toSorted((one, other) => (one.boot < other.boot ? -1 : 1));
  // The last one to begin has the first name.
  const logs = byName.map((test, index) =>
    makeLog(test, 3, { sizes: [1], startSeconds: 16 - index, intervalSeconds: 1000 - (16 - index) }),
  );
  const next = (named: readonly MadeLog[]): MadeLog => {
    const before = naming(...named.map((log) => at(log.heads, -1)));
    return makeLog(testBoot(2), 2, { sizes: [1], startSeconds: 2000, before });
  };
  return [
    stated('17 boots that ended at once, and one that names the first 16 names', [...logs, next(logs.slice(0, 16))]),
    stated(
      '17 boots that ended at once, and one that names the last 16 names',
      [...logs, next(logs.slice(1))],
      'not_named',
    ),
  ];
}

/** Read, so that a head of another form is no case. */
function digestNote({ heads }: MadeLog): string {
  const note = at(heads, 0);
  digestOf(note);
  return note;
}

function identityCases(): LogCase[] {
  const plain = written(makeLog(testBoot(1), 1, PLAN));
  const ofDocument = (bytes: number) => {
    const test = testBoot(3, Buffer.alloc(bytes));
    const log = written(makeLog(test, 3, { sizes: [1], startSeconds: 0 }));
    return { ...log, identity: encodeIdentity(test.identity) };
  };
  const changes: readonly Change[] = [
    ['a version that is true', (text) => text.replace('"version":1', '"version":true')],
    ['another kind', (text) => text.replace('unattested', 'other').replace(':null', ':"AAAA"')],
    ['a key that is a number', (text) => text.replace(/"public_key":"[^"]+"/, '"public_key":5')],
    ['a document that is a number', (text) => text.replace('unattested', 'attested').replace(':null', ':5')],
    ['a key of another spelling', (text) => text.replace(/.("[^"]*"genesis)/, (_, rest) => `!${rest}`)],
  ];
  return [
    withFaults('a document of one byte', [ofDocument(1)], ['not_attested']),
    withFaults('the largest document', [ofDocument(MAX_DOCUMENT_BYTES)], ['not_attested']),
    withFaults('a document that is one byte larger', [ofDocument(MAX_DOCUMENT_BYTES + 1)], ['malformed_identity']),
    ...changes.map(([name, change]) =>
      withFaults(
        `an identity of another form: ${name}`,
        [{ ...plain, identity: change(plain.identity) }],
        ['malformed_identity'],
      ),
    ),
  ];
}
