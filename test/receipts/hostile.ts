// Logs at random as attackers alter them: entries, heads and identities, of which some are signed again, in any number
// at once, under any question. What is right of them nobody says here: two verifiers that were written apart agree.

import { type LogHead, readHead } from '../../common/receipts/head.ts';
import { encodeIdentity, identityBinding } from '../../common/receipts/identity.ts';
import { leafHash } from '../../common/receipts/tree.ts';
import { encodeEntry } from './encode-entry.ts';
import { type LogCase, type WrittenBoot, written } from './log-cases.ts';
import { digestOf, type MadeLog, makeLog, resigned, START_MS, type TestBoot, testBoot, testEntry } from './logs.ts';
import { type Chance, chanceOf } from './model.ts';

export interface HostileCases {
  readonly documents: Readonly<Record<string, string>>;
  readonly logs: readonly LogCase[];
}

const TESTS: readonly TestBoot[] = [70, 71, 72, 73, 74, 75, 76, 77].map((seed) =>
  testBoot(seed, seed % 2 === 0 ? Buffer.from(`document ${seed}`) : null),
);
const ODD = ['{', '}', '"', ',', ' ', '0', '1', '-', 'a', 'A', '\n', '—', '\\u0000', '.0', 'e1', 'null', '\u00e9'];
const ABSENT = 'ab'.repeat(32);

type Change = (boots: WrittenBoot[], chance: Chance, logs: readonly MadeLog[]) => void;

const pick = <T>(chance: Chance, list: readonly T[]): T => list[chance.below(list.length)] as T;

function withOne(change: (boot: WrittenBoot, chance: Chance, log: MadeLog) => Partial<WrittenBoot>): Change {
  return (boots, chance, logs) => {
    const at = chance.below(boots.length);
    const [boot, log] = [boots[at], logs[at % logs.length]];
    if (boot !== undefined && log !== undefined) boots[at] = { ...boot, ...change(boot, chance, log) };
  };
}

const ofEntries = (change: (entries: NonNullable<WrittenBoot['entries']>, chance: Chance) => WrittenBoot['entries']) =>
  withOne(({ entries }, chance) => ({ entries: entries === null ? null : change(entries, chance) }));

const ofHeads = (change: (heads: readonly string[], chance: Chance, log: MadeLog) => readonly string[]) =>
  withOne(({ heads }, chance, log) => ({ heads: change(heads, chance, log) }));

function edited(text: string, chance: Chance): string {
  const at = chance.below(text.length + 1);
  return text.slice(0, at) + (chance.below(4) === 0 ? '' : pick(chance, ODD)) + text.slice(at + chance.below(2));
}

/** By the boot's key, or by another one. */
function signedAgain(heads: readonly string[], chance: Chance, { test }: MadeLog): readonly string[] {
  const at = chance.below(heads.length);
  const note = heads[at] ?? '';
  const key = chance.below(8) === 0 ? pick(chance, TESTS) : test;
  return readHead(note) === undefined
    ? heads
    : heads.with(
        at,
        resigned(note, key, (head) => altered(head, chance)),
      );
}

function altered(head: LogHead, chance: Chance): LogHead {
  const { statement } = head;
  const stated = (change: Partial<LogHead['statement']>): LogHead => ({
    ...head,
    statement: { ...statement, ...change },
  });
  const { before, time } = statement;
  const shift = pick(chance, [-30_001, -30_000, -1, 1, 29_999, 30_000, 120_000]);
  return pick(chance, [
    () => ({ ...head, size: Math.max(0, head.size + pick(chance, [-1, 1, 3])) }),
    () => ({ ...head, root: Buffer.alloc(32, chance.below(256)) }),
    () => stated({ time: time + shift }),
    () => stated({ lost: chance.below(3) }),
    () => stated({ closed: !statement.closed }),
    () => stated({ retention_days: pick(chance, [null, 1, 3650]) }),
    () => stated(statement.sequence === 0 ? {} : { sequence: 1 + chance.below(4) }),
    () => stated(statement.previous === null ? {} : { previous: ABSENT }),
    () => stated(before === null ? {} : { before: { heads: [], gap: pick(chance, [null, 'unreadable'] as const) } }),
    () => stated(before === null || before.gap !== null ? {} : { before: { ...before, heads: before.heads.slice(1) } }),
    () =>
      stated(
        before === null || before.gap !== null || before.heads.includes(ABSENT)
          ? {}
          : { before: { ...before, heads: [...before.heads, ABSENT].toSorted() } },
      ),
  ])();
}

const CHANGES: readonly Change[] = [
  ofEntries((entries, chance) => entries.toSpliced(chance.below(entries.length + 1), 1)),
  ofEntries((entries, chance) => [...entries, encodeEntry(testEntry(99, chance.below(5))).toString('base64')]),
  ofEntries((entries, chance) => {
    const entry = entries[chance.below(entries.length)];
    return entry === undefined ? entries : entries.toSpliced(chance.below(entries.length), chance.below(2), entry);
  }),
  ofEntries((entries, chance) => {
    const [at, byte] = [chance.below(Math.max(1, entries.length)), chance.below(256)];
    const entry = entries[at];
    if (typeof entry !== 'string') return entries;
    const bytes = Buffer.from(entry, 'base64');
    bytes[chance.below(bytes.length)] = byte;
    return entries.with(at, bytes.toString('base64'));
  }),
  ...[0, 1].map(() =>
    ofEntries((entries, chance) => {
      const until = chance.below(entries.length + 1);
      return entries.map((entry, at) =>
        at < until && typeof entry === 'string'
          ? { hash: leafHash(Buffer.from(entry, 'base64')).toString('base64') }
          : entry,
      );
    }),
  ),
  withOne(() => ({ entries: null })),
  ofHeads((heads, chance) => heads.toSpliced(chance.below(heads.length + 1), 1)),
  ofHeads((heads) => heads.toReversed()),
  ofHeads((heads, chance) => (heads.length === 0 ? heads : [...heads, edited(pick(chance, heads), chance)])),
  ofHeads((heads, chance) => {
    const at = chance.below(heads.length);
    return heads.map((note, index) => (index === at ? edited(note, chance) : note));
  }),
  ofHeads((heads, chance) =>
    heads.map((note) => `${note}— witness.example ${pick(chance, ['AAAAAAAA', 'AAAB', 'A=='])}\n`),
  ),
  ...[0, 1, 2, 3].map(() => ofHeads(signedAgain)),
  withOne(({ identity }, chance) => ({ identity: edited(identity, chance) })),
  withOne((_boot, chance, { test }) => {
    const { document } = pick(chance, TESTS).identity;
    const kind = document === null ? 'unattested' : 'attested';
    return { identity: encodeIdentity({ ...test.identity, document, kind }) };
  }),
  (boots, chance) => void (boots.length > 1 && boots.splice(chance.below(boots.length), 1)),
  (boots, chance) => void boots.push(pick(chance, boots)),
  (boots) => void boots.splice(0, boots.length, ...boots.toReversed()),
  (boots, chance) => {
    const [one, other] = [chance.below(boots.length), chance.below(boots.length)];
    const heads = boots[other]?.heads ?? [];
    const boot = boots[one];
    if (boot !== undefined) boots[one] = { ...boot, heads };
  },
];

/** Boots of a fleet: some run beside others, and each names what it reads, or not all of it. */
function fleetAtRandom(chance: Chance): MadeLog[] {
  const logs: MadeLog[] = [];
  let startSeconds = 0;
  for (let index = 0; index < 1 + chance.below(4); index++) {
    const sizes = Array.from({ length: chance.below(4) }, () => chance.below(5)).map((_, at, all) =>
      all.slice(0, at + 1).reduce((sum, more) => sum + more, 0),
    );
    const nowMs = START_MS + startSeconds * 1000;
    const seen = logs.flatMap(
      ({ heads }) => heads.findLast((note) => (readHead(note)?.statement.time ?? 0) < nowMs) ?? [],
    );
    const named = seen.filter(() => chance.below(12) > 0).map(digestOf);
    const test = TESTS[(index * 3 + chance.below(3)) % TESTS.length] ?? testBoot(70);
    if (logs.some((log) => log.test.boot === test.boot)) continue;
    const before = { heads: named.toSorted(), gap: null };
    const intervalSeconds = pick(chance, [10, 60, 43_200]);
    const plan = { sizes, startSeconds, before, intervalSeconds, closed: chance.below(3) > 0 };
    logs.push(makeLog(test, 70 + index, chance.below(4) > 0 ? plan : { ...plan, retentionDays: 1 }));
    startSeconds += pick(chance, [5, 29, 31, 200, 90_000]);
  }
  return logs;
}

export function hostileCases(firstSeed: number, count: number): HostileCases {
  const documents = Object.fromEntries(
    TESTS.flatMap(({ identity }) =>
      identity.document === null
        ? []
        : [[identity.document.toString('base64'), identityBinding(identity).toString('hex')] as const],
    ),
  );
  const logs = Array.from({ length: count }, (_, index): LogCase => {
    const seed = firstSeed + index;
    const chance = chanceOf(seed);
    const made = fleetAtRandom(chance);
    const boots = made.map(written);
    for (let change = chance.below(4); change > 0; change--) pick(chance, CHANGES)(boots, chance, made);
    const moment = (): number => START_MS + pick(chance, [-1, 0, 1, 60_000, 61_000, 200_000, 90_000_000]);
    const [from, to] = [moment(), moment()].toSorted((one, other) => one - other) as [number, number];
    const asked = {
      ...(chance.below(2) === 0 ? { from, to } : {}),
      ...(chance.below(3) === 0 ? { removable: moment() } : {}),
      unattested: chance.below(2) === 0,
      roots: [0, 1, 3, 9].filter(() => chance.below(2) === 0).map((byte) => Buffer.alloc(32, byte).toString('hex')),
    };
    return { name: `seed ${seed}`, boots, asked, verdict: '', faults: [] };
  });
  return { documents, logs };
}
