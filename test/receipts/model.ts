// A model of signers that keep logs through restarts and crashes, and of those who change what the logs show. Each case
// is a chain of boots at random with one change at random; it states which findings show that change.

import { leafHash } from '../../common/receipts/tree.ts';
import { encodeEntry } from './encode-entry.ts';
import { type LogCase, type WrittenBoot, type WrittenEntry, written } from './log-cases.ts';
import { digestOf, type MadeLog, makeLog, naming, testBoot, testEntry } from './logs.ts';

export interface ModelCase extends LogCase {
  readonly change: string;
  /** One of them is found at least; null: nobody changed anything. */
  readonly expected: readonly string[] | null;
  readonly hasGapsOnly: boolean;
}

export interface Chance {
  /** A whole number below the bound. */
  below(bound: number): number;
}

interface Change {
  readonly name: string;
  readonly expected: readonly string[];
  readonly isGap?: boolean;
  /** Undefined when these boots have no place for the change. */
  make(boots: readonly WrittenBoot[], logs: readonly MadeLog[], chance: Chance): WrittenBoot[] | undefined;
}

/** mulberry32: enough for choices that can be made again. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  return {
    below(bound) {
      state = (state + 0x6d2b79f5) >>> 0;
      let mixed = Math.imul(state ^ (state >>> 15), state | 1);
      mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
      return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
    },
  };
}

/** Boots one after the other; each names the last heads of those before, and may end in a crash. */
function chainAtRandom(chance: Chance): MadeLog[] {
  const logs: MadeLog[] = [];
  const boots = 3 + chance.below(3);
  let startSeconds = 0;
  for (let index = 0; index < boots; index++) {
    const sizes: number[] = [];
    for (let head = 0; head < 2 + chance.below(4); head++) {
      sizes.push((sizes.at(-1) ?? 0) + (head === 0 ? 3 : 0) + chance.below(300));
    }
    const before = naming(...logs.map(({ heads }) => heads.at(-1) ?? ''));
    const closed = chance.below(2) === 0;
    logs.push(makeLog(testBoot(40 + index), 40 + index, { sizes, startSeconds, before, closed }));
    startSeconds += sizes.length * 60 + 5 + chance.below(1000);
  }
  return logs;
}

/** Of any boot but, where it says so, the last one. */
function withBoot(boots: readonly WrittenBoot[], index: number, change: Partial<WrittenBoot>): WrittenBoot[] {
  return boots.map((boot, place) => (place === index ? { ...boot, ...change } : boot));
}

function withEntries(
  change: (entries: readonly WrittenEntry[], at: number) => WrittenEntry[],
): (boots: readonly WrittenBoot[], logs: readonly MadeLog[], chance: Chance) => WrittenBoot[] {
  return (boots, _logs, chance) => {
    const index = chance.below(boots.length);
    const entries = boots[index]?.entries ?? [];
    return withBoot(boots, index, { entries: change(entries, chance.below(entries.length)) });
  };
}

/** The first boot once more, with heads that speak of retention, and one of its entries by its hash. */
function withRemoval(
  indexOf: (removable: number, chance: Chance, size: number) => number,
): (boots: readonly WrittenBoot[], logs: readonly MadeLog[], chance: Chance) => WrittenBoot[] | undefined {
  return (_boots, logs, chance) => {
    const [first] = logs;
    if (first === undefined) return undefined;
    const sizes = [1, 2, 3, 4].map((part) => part * (1 + chance.below(90)));
    const plan = { sizes: sizes.toSorted((one, other) => one - other), startSeconds: 0, intervalSeconds: 43_200 };
    const log = makeLog(first.test, 96, { ...plan, retentionDays: 1 });
    // The last head is of hour 48: what the head of hour 24 covers may go.
    const index = indexOf(plan.sizes[1] ?? 0, chance, log.entries.length);
    const hash = leafHash(log.entries[index] ?? Buffer.alloc(0)).toString('base64');
    return [{ ...written(log), entries: written(log).entries?.with(index, { hash }) ?? null }];
  };
}

const FORGED = encodeEntry(testEntry(99, 3)).toString('base64');

const CHANGES: readonly Change[] = [
  {
    name: 'a forged entry',
    expected: ['other_root'],
    make: withEntries((entries, at) => entries.with(at, FORGED)),
  },
  {
    name: 'an entry that lacks',
    expected: ['missing_entries'],
    make: withEntries((entries, at) => entries.toSpliced(at, 1)),
  },
  {
    name: 'an entry twice',
    expected: ['other_root', 'uncovered_entries'],
    make: withEntries((entries, at) => entries.toSpliced(at, 0, entries[at] ?? '')),
  },
  {
    name: 'two entries in the other order',
    expected: ['other_root'],
    make: withEntries((entries, at) => {
      const other = (at + 1) % entries.length;
      return entries.with(at, entries[other] ?? '').with(other, entries[at] ?? '');
    }),
  },
  {
    name: 'entries of another boot',
    expected: ['other_root', 'missing_entries'],
    make: (boots) => withBoot(boots, 0, { entries: boots[1]?.entries ?? [] }),
  },
  {
    name: 'entries that are old enough are removed',
    expected: ['removed_by_retention'],
    isGap: true,
    make: withRemoval((removable, chance) => chance.below(removable)),
  },
  {
    name: 'an entry withheld under the pretext of retention',
    expected: ['missing_entries'],
    make: withRemoval((removable, chance, size) => removable + chance.below(size - removable)),
  },
  {
    name: 'two logs of one boot',
    expected: ['two_logs'],
    make(boots, logs, chance) {
      const index = chance.below(boots.length);
      const own = logs[index];
      if (own === undefined) return undefined;
      const sizes = own.heads.slice(1).map((_, at) => at + 1);
      const second = makeLog(own.test, 98, { sizes, startSeconds: 0 });
      const at = 1 + chance.below(sizes.length);
      return withBoot(boots, index, { heads: [...(boots[index]?.heads ?? []), second.heads[at] ?? ''] });
    },
  },
  {
    name: 'a head that lacks',
    expected: ['missing_head'],
    make(boots, _logs, chance) {
      const index = chance.below(boots.length);
      const heads = boots[index]?.heads ?? [];
      return withBoot(boots, index, { heads: heads.toSpliced(chance.below(heads.length - 1), 1) });
    },
  },
  {
    name: 'the last head of an earlier boot is withheld',
    expected: ['unknown_head'],
    make(boots, _logs, chance) {
      const index = chance.below(boots.length - 1);
      return withBoot(boots, index, { heads: boots[index]?.heads.slice(0, -1) ?? [] });
    },
  },
  {
    name: 'a boot in the middle is withheld',
    expected: ['unknown_head'],
    make: (boots, _logs, chance) => boots.toSpliced(1 + chance.below(boots.length - 2), 1),
  },
  {
    name: 'the earliest boots are not there',
    expected: ['unlisted'],
    isGap: true,
    make: (boots, _logs, chance) => boots.slice(1 + chance.below(boots.length - 1)),
  },
  {
    name: 'a table rolled back before a restart',
    expected: ['rolled_back'],
    make: (boots, logs, chance) => withLastBoot(boots, logs, (log) => log.heads.at(chance.below(log.heads.length - 1))),
  },
  {
    name: 'a table emptied before a restart',
    expected: ['not_named'],
    make: (boots, logs) => withLastBoot(boots, logs, () => undefined),
  },
  {
    name: 'a table that does not answer at a restart',
    expected: ['unlinked'],
    isGap: true,
    make: (boots, logs) => withLastBoot(boots, logs, 'unreadable'),
  },
];

/** The last boot once more, of a signer that read this of the boot before it, and of the others what is there. */
function withLastBoot(
  boots: readonly WrittenBoot[],
  logs: readonly MadeLog[],
  read: ((log: MadeLog) => string | undefined) | 'unreadable',
): WrittenBoot[] | undefined {
  const own = logs.at(-1);
  const last = logs.at(-2);
  if (own === undefined || last === undefined) return undefined;
  const rest = logs.slice(0, -2).map(({ heads }) => digestOf(heads.at(-1) ?? ''));
  const found = read === 'unreadable' ? undefined : read(last);
  const before =
    read === 'unreadable'
      ? ({ heads: [], gap: 'unreadable' } as const)
      : { heads: [...rest, ...(found === undefined ? [] : [digestOf(found)])].sort(), gap: null };
  const startSeconds = 1_000_000;
  const made = makeLog(own.test, 97, { sizes: [3, 9], startSeconds, before });
  return [...boots.slice(0, -1), written(made)];
}

/** Each change in its turn, and every sixteenth case unchanged. */
export function modelCases(firstSeed: number, count: number): ModelCase[] {
  return Array.from({ length: count }, (_, index) => {
    const seed = firstSeed + index;
    const chance = chanceOf(seed);
    const logs = chainAtRandom(chance);
    const boots = logs.map(written);
    const change = CHANGES[index % (CHANGES.length + 1)];
    const changed = change?.make(boots, logs, chance) ?? boots;
    return {
      name: `seed ${seed}: ${change?.name ?? 'nothing is changed'}`,
      change: change?.name ?? 'none',
      boots: changed,
      asked: {
        roots: [3, 5, 9, 97].map((byte) => Buffer.alloc(32, byte).toString('hex')),
        unattested: index % 2 === 0,
      },
      expected: change?.expected ?? null,
      hasGapsOnly: change === undefined || change.isGap === true,
      verdict: '',
      faults: [],
    };
  });
}
