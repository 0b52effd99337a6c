// What lies ahead of the clock (docs/specification/slashing.md#ahead): of messages, of files, of what a store holds.
// `latest` is the latest that is signed and imported.

import { SignerError } from '../api/errors.ts';
import { highestOf, NO_MARKS } from './history/head.ts';
import type { KeyMarks, Marks, SlashableMessage, StoreFloor, ValidatorHistory } from './types.ts';

export interface ChainTime {
  readonly genesisTimeSeconds: number;
  readonly slotDurationMs: number;
  readonly slotsPerEpoch: number;
  readonly tolerance: ClockTolerance;
}

/** Between the clock of a signer and the clocks of those who ask it. */
export interface ClockTolerance {
  /** What lies further ahead of its clock a signer neither signs nor imports. */
  readonly aheadSeconds: number;
  /** The largest that a signer of the same store may have: a jump covers what any of them has signed. */
  readonly jumpSeconds: number;
}

export const CLOCK_TOLERANCE_SECONDS = 12;
export const MAX_CLOCK_TOLERANCE_SECONDS = 120;
/** Signers that share a state table, whose codes no other signer can write: all of them have the same. */
export const FLEET_TOLERANCE: ClockTolerance = {
  aheadSeconds: CLOCK_TOLERANCE_SECONDS,
  jumpSeconds: CLOCK_TOLERANCE_SECONDS,
};

/** The latest that is signed and imported: what lies beyond it is ahead of the clock. */
export function latestBy(now: () => number, chain: ChainTime): () => StoreFloor {
  return () => presentIn(chain.tolerance.aheadSeconds, now(), chain);
}

/** The latest that may be signed so many seconds from now. */
export function presentIn(seconds: number, now: number, chain: ChainTime): StoreFloor {
  const slot = slotAt(now + seconds * 1000, chain);
  const epoch = Math.floor(slot / chain.slotsPerEpoch);
  return { slot, targetEpoch: epoch, sourceEpoch: Math.max(0, epoch - 1) };
}

function slotAt(now: number, { genesisTimeSeconds, slotDurationMs }: ChainTime): number {
  return Math.max(0, Math.floor((now - genesisTimeSeconds * 1000) / slotDurationMs));
}

/** A source of the present epoch is ahead too: were the vote lost, a jump would let one from before surround it. */
export function isAhead(message: SlashableMessage, latest: StoreFloor): boolean {
  if (message.kind === 'block') return message.slot > latest.slot;
  const { sourceEpoch, targetEpoch } = message;
  return targetEpoch > latest.targetEpoch || (sourceEpoch > latest.sourceEpoch && sourceEpoch <= targetEpoch);
}

/** What of a key lies ahead, and by how much; undefined when nothing does. */
export function leadOf(marks: Marks, latest: StoreFloor): string | undefined {
  const { slot, sourceEpoch, targetEpoch } = marks;
  const leads = [
    ['a block of slot', slot, latest.slot, 'slots'],
    ['a vote with target epoch', targetEpoch, latest.targetEpoch, 'epochs'],
    ['a vote with source epoch', sourceEpoch, latest.sourceEpoch, 'epochs'],
  ] as const;
  const said = leads.flatMap(([what, mark, limit, unit]) =>
    mark === null || mark <= limit ? [] : [`${what} ${mark} (${mark - limit} ${unit} ahead)`],
  );
  return said.length === 0 ? undefined : said.join(', ');
}

const MAX_NAMED_KEYS = 16;

/** Names keys of a store whose marks lie ahead; undefined when there are none. */
export function sayAhead(keys: KeyMarks, latest: StoreFloor): string | undefined {
  if (keys.size === 0) return undefined;
  const named = [...keys].slice(0, MAX_NAMED_KEYS).map(([key, marks]) => `${key} has ${leadOf(marks, latest)}`);
  const more = keys.size > named.length ? `, and ${keys.size - named.length} more` : '';
  return `keys with records ahead of the clock sign no blocks, or no votes, until then: ${named.join('; ')}${more}`;
}

export interface AheadKeys {
  readonly keys: KeyMarks;
  /** How many of the keys have blocks ahead, and votes. */
  readonly block: number;
  readonly attestation: number;
}

export function aheadKeys(keys: KeyMarks, latest: StoreFloor): AheadKeys {
  const marks = [...keys.values()];
  return {
    keys,
    block: marks.filter(({ slot }) => leadOf({ ...NO_MARKS, slot }, latest) !== undefined).length,
    attestation: marks.filter((own) => leadOf({ ...own, slot: null }, latest) !== undefined).length,
  };
}

/** @throws SignerError ahead_of_clock, while it is iterated, so that nothing of the file is merged */
export async function* noneAhead(
  histories: AsyncIterable<ValidatorHistory>,
  latest: () => StoreFloor,
): AsyncGenerator<ValidatorHistory> {
  let index = 0;
  for await (const history of histories) {
    const lead = leadOf(highestOf(history), latest());
    if (lead !== undefined) {
      const hint = `nothing was imported: ${history.place ?? `data[${index}]`}, key ${history.publicKey}, has ${lead}`;
      throw new SignerError('ahead_of_clock', { hint });
    }
    index += 1;
    yield history;
  }
}
