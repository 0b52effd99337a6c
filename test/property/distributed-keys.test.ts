// The law of distributed keys: t of n participants sign together, each by its own slashing store. While at most
// 2t − n − 1 of them have lost their records, were restored from a copy, were cloned, or sign whatever they are asked,
// nothing slashable is signed with the whole key, whatever clients and combiners ask of whom. With one more of them a
// slashable pair is found, by each of these faults. The checker sees the messages that t participants signed alone.
//
// TEST_SCALE=20 asks a million messages. TEST_SEED: the first seed; each world has the next one.

import { describe, expect, it } from 'vitest';
import type { SlashableMessage, SlashingBackend } from '../../signer/slashing/types.ts';
import { randomNumbers } from '../support/fault-proxy.ts';
import { sized, testSeed } from '../support/scale.ts';
import { checkOne, MAIN_ROOT } from '../support/slashing.ts';
import { slashablePairs } from '../support/slashing-checker.ts';
import { type MemoryRecords, memoryBackend, newMemoryRecords } from '../support/slashing-memory.ts';
import { randomMessages } from '../support/slashing-model.ts';

const MESSAGES = sized(4_000, 50_000);
const MESSAGES_OF_A_WORLD = 50;
const WORLDS_UNTIL_A_PAIR = 400;
const FIRST_SEED = testSeed(1);

const FAULTS = ['loses its records', 'is restored from a copy', 'is cloned', 'signs whatever it is asked'] as const;
type Fault = (typeof FAULTS)[number];
type Ask = (message: SlashableMessage) => Promise<boolean>;

interface Size {
  readonly threshold: number;
  readonly participants: number;
}

const SIZES: readonly Size[] = [
  { threshold: 3, participants: 4 },
  { threshold: 5, participants: 7 },
  { threshold: 2, participants: 3 },
  { threshold: 4, participants: 5 },
  { threshold: 3, participants: 3 },
];
const forgiven = ({ threshold, participants }: Size): number => 2 * threshold - participants - 1;

async function isSigned(backend: SlashingBackend, message: SlashableMessage): Promise<boolean> {
  return (await checkOne(backend, message)).kind === 'safe';
}

function participant(fault: Fault | undefined, random: () => number): Ask {
  const records = newMemoryRecords(MAIN_ROOT);
  const own = memoryBackend(records);
  const happens = (chance: number): boolean => random() < chance;
  switch (fault) {
    case undefined:
      return (message) => isSigned(own, message);
    case 'signs whatever it is asked':
      return async () => true;
    case 'is cloned': {
      const clone = memoryBackend(newMemoryRecords(MAIN_ROOT));
      return (message) => isSigned(happens(0.5) ? own : clone, message);
    }
    case 'loses its records': {
      const empty = records.contents;
      return (message) => {
        if (happens(0.1)) records.contents = empty;
        return isSigned(own, message);
      };
    }
    case 'is restored from a copy':
      return restoredParticipant(records, own, happens);
  }
}

function restoredParticipant(records: MemoryRecords, own: SlashingBackend, happens: (chance: number) => boolean): Ask {
  let copy = records.contents;
  return (message) => {
    if (happens(0.1)) copy = records.contents;
    else if (happens(0.2)) records.contents = copy;
    return isSigned(own, message);
  };
}

interface World extends Size {
  readonly seed: number;
  /** Of the first participants, one each; those of the others are sound. */
  readonly faults: readonly Fault[];
}

/** The messages that were signed with the whole key. */
async function signedIn({ seed, threshold, participants, faults }: World): Promise<readonly SlashableMessage[]> {
  const random = randomNumbers(seed);
  const all = Array.from({ length: participants }, (_, index) => participant(faults[index], random));
  const partials = new Map<string, Set<number>>();
  const signed: SlashableMessage[] = [];
  for (const message of randomMessages({ count: MESSAGES_OF_A_WORLD, keys: 2, span: 6, seed })) {
    const name = JSON.stringify({ ...message, signingRoot: Buffer.from(message.signingRoot).toString('hex') });
    const who = partials.get(name) ?? new Set();
    partials.set(name, who);
    for (const [index, ask] of all.entries()) {
      if (random() < 0.7 && (await ask(message))) who.add(index);
    }
    if (who.size >= threshold) signed.push(message);
  }
  return signed;
}

describe.each(SIZES)('$threshold of $participants', (size) => {
  const most = forgiven(size);
  const count = Math.ceil(MESSAGES / MESSAGES_OF_A_WORLD);

  it(`nothing slashable is signed with ${most} that are faulty`, { timeout: 3_600_000 }, async () => {
    let signed = 0;
    for (let seed = FIRST_SEED; seed < FIRST_SEED + count; seed++) {
      const faults = Array.from({ length: most }, (_, index) => FAULTS[(seed + index) % FAULTS.length] ?? FAULTS[0]);
      const released = await signedIn({ ...size, seed, faults });
      signed += released.length;
      expect({ seed, pairs: slashablePairs(released) }).toEqual({ seed, pairs: [] });
    }
    expect(signed).toBeGreaterThan(count); // else it would prove nothing
  });

  it.each(FAULTS)(`a pair is found with ${most + 1} of which each %s`, async (fault) => {
    const faults = Array.from({ length: most + 1 }, () => fault);
    for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS_UNTIL_A_PAIR; seed++) {
      if (slashablePairs(await signedIn({ ...size, seed, faults })).length > 0) return;
    }
    expect.unreachable('no world noticed it');
  });
});

it('half of the participants as a threshold would sign a pair with none that is faulty', async () => {
  const size = { threshold: 2, participants: 4 };
  for (let seed = FIRST_SEED; seed < FIRST_SEED + WORLDS_UNTIL_A_PAIR; seed++) {
    if (slashablePairs(await signedIn({ ...size, seed, faults: [] })).length > 0) return;
  }
  expect.unreachable('no world noticed it');
});
