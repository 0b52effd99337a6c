// Whether the database is still the one that this process committed to. A promoted standby, a restored backup, or an
// old primary that came back holds less than was answered, and its own rows do not say so. Answers of two connections
// may come in another order, so one is compared with what was known when its question was sent.

import { higherMarks, NO_MARKS } from '../../history/head.ts';
import { coversFloor, marksOf } from '../../history/rules.ts';
import { readIncarnations } from '../../incarnation.ts';
import type { SlashableMessage, StoreFloor, StoreIdentity } from '../../types.ts';
import type { ServerIdentity, ServerPlace } from './server.ts';

export type Lineage = ReturnType<typeof lineage>;

export interface StoreLineage extends Pick<StoreIdentity, 'floor' | 'incarnation'> {
  readonly server: ServerIdentity;
  readonly revision: number;
}

interface KnownStore extends ServerIdentity, Pick<StoreLineage, 'revision' | 'floor'> {
  /** The latest number in its incarnation: every later state of the store still has it (incarnation.ts). */
  readonly number: string;
  /** Another one since the process learnt that the database is another. */
  readonly era: number;
  /** The write-ahead log is never shorter than this, unless it is another log. */
  readonly walAtLeast: number;
}

export function lineage() {
  let recorded = NO_MARKS;
  let known: KnownStore | undefined;
  let era = 0;

  /** Over everything that this process recorded, since it looked at the store. */
  const isRaisedOver = (before: StoreFloor | null, floor: StoreFloor | null) => {
    if (!coversFloor(floor, before) || coversFloor(before, floor)) return false;
    return coversFloor(floor, recorded);
  };
  const learn = (place: ServerPlace, record: StoreLineage) => {
    era += 1;
    const { systemIdentifier, objects, timeline } = place;
    const { revision, floor } = record;
    const number = latestNumber(record);
    known = { systemIdentifier, objects, timeline, era, walAtLeast: surelyKept(place), revision, floor, number };
  };
  const raiseWal = (expected: KnownStore | undefined, position: number) => {
    if (known === undefined || known.era !== (expected?.era ?? known.era)) return;
    known = { ...known, walAtLeast: Math.max(known.walAtLeast, position) };
  };

  return {
    /** An answer to a question that is sent now has to agree with it; undefined before the first answer. */
    get known(): KnownStore | undefined {
      return known;
    },
    /** Records may have been lost: nothing is signed before a jump has raised the store. */
    doubt(
      expected: KnownStore | undefined,
      now: ServerPlace,
      record: StoreLineage,
    ): 'other_server' | 'incarnation' | undefined {
      if (!isSameServer(now, record.server)) return 'other_server';
      if (expected === undefined) {
        if (known === undefined) learn(now, record);
        return known === undefined || isSameServer(now, known) ? undefined : 'other_server';
      }
      const isSame = isSameServer(now, expected);
      const isShorter = now.walPosition !== null && now.walPosition < expected.walAtLeast;
      const isOlder = record.revision < expected.revision || !coversFloor(record.floor, expected.floor);
      // A store that was put back may have a higher revision by now: it never has the number.
      const isOther = !record.incarnation.includes(expected.number);
      if (isSame && !isShorter && !isOlder && !isOther) {
        if (known?.era === expected.era) known = { ...known, ...higherOf(known, record) };
        raiseWal(expected, surelyKept(now));
        return undefined;
      }
      // An earlier timeline is an old primary that came back.
      const isRaised = isRaisedOver(expected.floor, record.floor) && (isSame || isLaterTimeline(now, expected));
      if (isRaised && known?.era === expected.era) learn(now, record);
      if (isRaised) return undefined;
      return isSame && !isShorter ? 'incarnation' : 'other_server';
    },
    /** A commit of these messages succeeded; it lies beyond the position. */
    committed(expected: KnownStore | undefined, place: ServerPlace, messages: readonly SlashableMessage[]): void {
      for (const message of messages) recorded = higherMarks(recorded, marksOf(message));
      raiseWal(expected, place.walPosition ?? 0);
    },
    /** Nothing that was lost can be signed again. */
    adopt: learn,
  };
}

/** After a crash the log may end before what was flushed. */
function surelyKept({ walFlushed }: ServerPlace): number {
  return Math.max(0, (walFlushed ?? 0) - LONGEST_PART_BYTES);
}

/** A record with the images of several pages is shorter. */
const LONGEST_PART_BYTES = 65_536;

function higherOf(known: KnownStore, record: StoreLineage): Pick<KnownStore, 'revision' | 'floor' | 'number'> {
  const { revision, floor } = record;
  return {
    revision: Math.max(known.revision, revision),
    floor: coversFloor(known.floor, floor) ? known.floor : floor,
    number: revision > known.revision ? latestNumber(record) : known.number,
  };
}

/** Empty, which every text includes, of a store that no signer has used. */
function latestNumber({ incarnation }: Pick<StoreLineage, 'incarnation'>): string {
  return readIncarnations(incarnation).held[0] ?? '';
}

/** What one of them does not say is no difference. */
function isSameServer(one: ServerIdentity, other: ServerIdentity): boolean {
  return isSameDatabase(one, other) && agree(one.timeline, other.timeline);
}

function isSameDatabase(one: ServerIdentity, other: ServerIdentity): boolean {
  return agree(one.systemIdentifier, other.systemIdentifier) && one.objects === other.objects;
}

function agree<Value>(one: Value | null, other: Value | null): boolean {
  return one === null || other === null || one === other;
}

/** The record names the later timeline only because a jump was made when it was first seen. */
function isLaterTimeline(now: ServerIdentity, known: ServerIdentity): boolean {
  return isSameDatabase(now, known) && (now.timeline ?? 0) > (known.timeline ?? 0);
}
