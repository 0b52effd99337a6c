// Whether the database is still the one that this process committed to. A promoted standby, a restored backup or an old
// primary that came back holds less than was answered, and its own records do not say so. Pure; the memory is that of
// one process and lasts as long as it.

import { NO_MARKS, raiseMarks } from '../history/rules.ts';
import { coversFloor } from '../jump.ts';
import type { HighWaterMarks, SlashableMessage, StoreFloor } from '../types.ts';
import type { ServerIdentity, ServerPlace } from './server.ts';

export interface Lineage {
  /** The highest slot and epochs that this process has recorded, of all keys. */
  readonly recorded: HighWaterMarks;
  /** The server that this process knows; undefined before its first batch. */
  readonly known: ServerIdentity | undefined;
  /** Whether records may have been lost: then nothing is signed before the store was raised by a jump. */
  isDoubtful(now: ServerPlace, record: StoreLineage): boolean;
  /** A commit of these messages succeeded there; the position is one that the commit lies beyond. */
  committed(place: ServerPlace, messages: readonly SlashableMessage[]): void;
  /** Looked at without a decision. */
  seen(place: ServerPlace): void;
  /** The store was raised there: nothing that was lost can be signed again. */
  adopt(place: ServerPlace): void;
}

/** What the record of the store says, under its code. */
export interface StoreLineage {
  readonly server: ServerIdentity;
  readonly floor: StoreFloor | null;
}

export function lineage(): Lineage {
  let recorded = NO_MARKS;
  let known: KnownServer | undefined;

  /** Everything that this process recorded is refused, because somebody raised the store after it. */
  const isCovered = (floor: StoreFloor | null) => {
    if (recorded === NO_MARKS) return true;
    const { blockSlot, sourceEpoch, targetEpoch } = recorded;
    return coversFloor(floor, { slot: blockSlot ?? 0, sourceEpoch: sourceEpoch ?? 0, targetEpoch: targetEpoch ?? 0 });
  };

  return {
    get recorded() {
      return recorded;
    },
    get known() {
      return known;
    },
    isDoubtful(now, { server, floor }) {
      if (!isSameServer(now, server)) return true;
      known ??= knownFrom(now);
      const isSame = isSameServer(now, known);
      const wentBack = now.walPosition !== null && now.walPosition < known.atLeast;
      if (isSame && !wentBack) {
        known = { ...known, atLeast: Math.max(known.atLeast, surelyKept(now)) };
        return false;
      }
      // Another process may have raised the store meanwhile. An earlier timeline is an old primary that came back.
      if (!isCovered(floor) || !(isSame || isLaterTimeline(now, known))) return true;
      known = knownFrom(now);
      return false;
    },
    committed(place, messages) {
      for (const message of messages) recorded = raiseMarks(recorded, message);
      if (known === undefined || !isSameServer(place, known)) return;
      known = { ...known, atLeast: Math.max(known.atLeast, place.walPosition ?? 0) };
    },
    seen(place) {
      if (known === undefined || !isSameServer(place, known)) return;
      known = { ...known, atLeast: Math.max(known.atLeast, surelyKept(place)) };
    },
    adopt(place) {
      known = knownFrom(place);
    },
  };
}

interface KnownServer extends ServerIdentity {
  /** The log is never shorter than this, unless it is another log. */
  readonly atLeast: number;
}

function knownFrom(place: ServerPlace): KnownServer {
  const { systemIdentifier, timeline } = place;
  return { systemIdentifier, timeline, atLeast: surelyKept(place) };
}

/** After a crash the log may end before what was flushed, when the last record there was not whole. */
function surelyKept({ walFlushed }: ServerPlace): number {
  return Math.max(0, (walFlushed ?? 0) - LONGEST_PART_BYTES);
}

/** A record with the images of several pages is shorter. */
const LONGEST_PART_BYTES = 65_536;

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
