// Whether the database is still the one that this process committed to. A promoted standby, a restored backup, or an
// old primary that came back holds less than was answered, and its own rows do not say so. Answers of two connections
// may come in another order, so one is compared with what was known when its question was sent.

import { higherMarks, marksOf, NO_MARKS } from '../history/rules.ts';
import { coversFloor } from '../jump.ts';
import type { HighWaterMarks, SlashableMessage, StoreFloor } from '../types.ts';
import type { ServerIdentity, ServerPlace } from './connection/server.ts';

export type Lineage = ReturnType<typeof lineage>;

export interface StoreLineage {
  readonly server: ServerIdentity;
  readonly revision: number;
  readonly floor: StoreFloor | null;
}

export interface KnownStore extends ServerIdentity {
  /** Another one since the process learnt that the database is another. */
  readonly era: number;
  /** The write-ahead log is never shorter than this, unless it is another log. */
  readonly walAtLeast: number;
  readonly revision: number;
  readonly floor: StoreFloor | null;
}

export function lineage() {
  let recorded = NO_MARKS;
  let known: KnownStore | undefined;
  let era = 0;

  /** Over everything that this process recorded, since it looked at the store. */
  const isRaisedOver = (before: StoreFloor | null, floor: StoreFloor | null) => {
    if (!isAtLeast(floor, before) || isAtLeast(before, floor)) return false;
    return recorded === NO_MARKS || coversFloor(floor, floorOf(recorded));
  };
  const learn = (place: ServerPlace, record: StoreLineage) => {
    era += 1;
    const { systemIdentifier, timeline } = place;
    const { revision, floor } = record;
    known = { systemIdentifier, timeline, era, walAtLeast: surelyKept(place), revision, floor };
  };
  const raiseWal = (expected: KnownStore | undefined, position: number) => {
    if (known === undefined || known.era !== (expected?.era ?? known.era)) return;
    known = { ...known, walAtLeast: Math.max(known.walAtLeast, position) };
  };

  return {
    /** What this process has recorded, of all keys. */
    get recorded(): HighWaterMarks {
      return recorded;
    },
    /** An answer to a question that is sent now has to agree with it; undefined before the first answer. */
    get known(): KnownStore | undefined {
      return known;
    },
    /** Records may have been lost: nothing is signed before a jump has raised the store. */
    isDoubtful(expected: KnownStore | undefined, now: ServerPlace, record: StoreLineage): boolean {
      if (!isSameServer(now, record.server)) return true;
      if (expected === undefined) {
        if (known === undefined) learn(now, record);
        return known !== undefined && !isSameServer(now, known);
      }
      const isSame = isSameServer(now, expected);
      const isShorter = now.walPosition !== null && now.walPosition < expected.walAtLeast;
      const isOlder = record.revision < expected.revision || !isAtLeast(record.floor, expected.floor);
      if (isSame && !isShorter && !isOlder) {
        if (known?.era === expected.era) known = { ...known, ...higherOf(known, record) };
        raiseWal(expected, surelyKept(now));
        return false;
      }
      // An earlier timeline is an old primary that came back.
      const isRaised = isRaisedOver(expected.floor, record.floor) && (isSame || isLaterTimeline(now, expected));
      if (isRaised && known?.era === expected.era) learn(now, record);
      return !isRaised;
    },
    /** A commit of these messages succeeded; it lies beyond the position. */
    committed(expected: KnownStore | undefined, place: ServerPlace, messages: readonly SlashableMessage[]): void {
      for (const message of messages) recorded = higherMarks(recorded, marksOf(message));
      raiseWal(expected, place.walPosition ?? 0);
    },
    seen(expected: KnownStore | undefined, place: ServerPlace): void {
      if (known !== undefined && isSameServer(place, known)) raiseWal(expected, surelyKept(place));
    },
    /** Nothing that was lost can be signed again. */
    adopt: learn,
  };
}

export function floorOf({ blockSlot, sourceEpoch, targetEpoch }: HighWaterMarks): StoreFloor {
  return { slot: blockSlot ?? 0, sourceEpoch: sourceEpoch ?? 0, targetEpoch: targetEpoch ?? 0 };
}

/** After a crash the log may end before what was flushed. */
function surelyKept({ walFlushed }: ServerPlace): number {
  return Math.max(0, (walFlushed ?? 0) - LONGEST_PART_BYTES);
}

/** A record with the images of several pages is shorter. */
const LONGEST_PART_BYTES = 65_536;

function higherOf(known: KnownStore, { revision, floor }: StoreLineage): Pick<KnownStore, 'revision' | 'floor'> {
  return {
    revision: Math.max(known.revision, revision),
    floor: isAtLeast(known.floor, floor) ? known.floor : floor,
  };
}

function isAtLeast(floor: StoreFloor | null, other: StoreFloor | null): boolean {
  return other === null || coversFloor(floor, other);
}

/** What one of them does not say is no difference. */
function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  return agree(one.systemIdentifier, other.systemIdentifier) && agree(one.timeline, other.timeline);
}

function agree<Value>(one: Value | null, other: Value | null): boolean {
  return one === null || other === null || one === other;
}

/** The record names the later timeline only because a jump was made when it was first seen. */
function isLaterTimeline(now: ServerIdentity, known: ServerIdentity): boolean {
  return agree(now.systemIdentifier, known.systemIdentifier) && (now.timeline ?? 0) > (known.timeline ?? 0);
}
