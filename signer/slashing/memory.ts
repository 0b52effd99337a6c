// What this process remembers of each key, whatever the store says: the recorded marks (a store with less was rolled
// back), and the last message whose commit failed. Another message in its place is a doubt, and is never signed.

import { NO_MARKS } from './history/head.ts';
import { isBeyondHistory, isRolledBack, marksOf } from './history/rules.ts';
import type { Marks, PublicKeyHex, SlashableMessage } from './types.ts';

export function signingMemory() {
  const marks = markTable();
  const doubts: Readonly<Record<SlashableMessage['kind'], Map<PublicKeyHex, SlashableMessage>>> = {
    block: new Map(),
    attestation: new Map(),
  };
  return {
    floors: marks.read,
    keys: marks.keys,

    recorded(message: SlashableMessage): void {
      const { kind, publicKey } = message;
      const own = marksOf(message);
      marks.raise(publicKey, own);
      const doubt = doubts[kind].get(publicKey);
      if (doubt !== undefined && !isRolledBack(own, marksOf(doubt))) doubts[kind].delete(publicKey);
    },

    /**
     * A commit of this message failed: it may be recorded. Only messages that are not in doubt are attempted, so it is
     * the earlier one again or lies beyond it.
     */
    attempted(message: SlashableMessage): void {
      doubts[message.kind].set(message.publicKey, message);
    },

    /** A failed attempt stands in this message's way; the same message may be tried again. */
    isInDoubt(message: SlashableMessage): boolean {
      const doubt = doubts[message.kind].get(message.publicKey);
      if (doubt === undefined) return false;
      const [own, attempted] = [marksOf(message), marksOf(doubt)];
      if (isBeyondHistory(message, attempted)) return false;
      const isSamePlace = !isRolledBack(own, attempted) && !isRolledBack(attempted, own);
      return !isSamePlace || Buffer.compare(message.signingRoot, doubt.signingRoot) !== 0;
    },
  };
}

const NONE = -1;
const COLUMNS = 3;
const FIRST_CAPACITY = 256;

/** Three numbers a key in one typed array: an object a key would take four times as much. */
function markTable() {
  const rows = new Map<PublicKeyHex, number>();
  let values = new Float64Array(FIRST_CAPACITY * COLUMNS).fill(NONE);

  function rowOf(publicKey: PublicKeyHex): number {
    const known = rows.get(publicKey);
    if (known !== undefined) return known;
    const row = rows.size * COLUMNS;
    if (row === values.length) {
      const larger = new Float64Array(values.length * 2).fill(NONE);
      larger.set(values);
      values = larger;
    }
    rows.set(publicKey, row);
    return row;
  }
  function valueAt(place: number): number | null {
    const value = values[place];
    return value === undefined || value === NONE ? null : value;
  }
  function raise(place: number, mark: number | null): void {
    if (mark !== null && mark > (values[place] ?? NONE)) values[place] = mark;
  }

  return {
    keys: () => rows.keys(),
    read(publicKey: PublicKeyHex): Marks {
      const row = rows.get(publicKey);
      if (row === undefined) return NO_MARKS;
      return { slot: valueAt(row), sourceEpoch: valueAt(row + 1), targetEpoch: valueAt(row + 2) };
    },
    raise(publicKey: PublicKeyHex, { slot, sourceEpoch, targetEpoch }: Marks): void {
      const row = rowOf(publicKey);
      raise(row, slot);
      raise(row + 1, sourceEpoch);
      raise(row + 2, targetEpoch);
    },
  };
}
