// What this process remembers of each key, whatever the store says: the recorded marks (a store with less was rolled
// back), and the last message whose commit failed. Another message in its place is a doubt, and is never signed.

import type { HighWaterMarks, PublicKeyHex, SlashableMessage } from './types.ts';

export function signingMemory() {
  const marks = markTable();
  const blockDoubts = new Map<PublicKeyHex, { slot: number; signingRoot: Uint8Array }>();
  const voteDoubts = new Map<PublicKeyHex, { sourceEpoch: number; targetEpoch: number; signingRoot: Uint8Array }>();

  return {
    floors: marks.read,

    recorded(message: SlashableMessage): void {
      const { publicKey } = message;
      if (message.kind === 'block') {
        marks.raise(publicKey, SLOT, message.slot);
        const doubt = blockDoubts.get(publicKey);
        if (doubt !== undefined && message.slot >= doubt.slot) blockDoubts.delete(publicKey);
        return;
      }
      marks.raise(publicKey, SOURCE, message.sourceEpoch);
      marks.raise(publicKey, TARGET, message.targetEpoch);
      const doubt = voteDoubts.get(publicKey);
      if (doubt === undefined) return;
      if (message.sourceEpoch >= doubt.sourceEpoch && message.targetEpoch >= doubt.targetEpoch) {
        voteDoubts.delete(publicKey);
      }
    },

    /**
     * A commit of this message failed: it may be recorded. Only messages that are not in doubt are attempted, so it is
     * the earlier one again or lies beyond it.
     */
    attempted(message: SlashableMessage): void {
      if (message.kind === 'block') blockDoubts.set(message.publicKey, message);
      else voteDoubts.set(message.publicKey, message);
    },

    /** A failed attempt stands in this message's way; the same message may be tried again. */
    isInDoubt(message: SlashableMessage): boolean {
      if (message.kind === 'block') {
        const doubt = blockDoubts.get(message.publicKey);
        if (doubt === undefined || message.slot > doubt.slot) return false;
        return message.slot < doubt.slot || Buffer.compare(message.signingRoot, doubt.signingRoot) !== 0;
      }
      const doubt = voteDoubts.get(message.publicKey);
      if (doubt === undefined) return false;
      if (message.targetEpoch > doubt.targetEpoch && message.sourceEpoch >= doubt.sourceEpoch) return false;
      return (
        message.sourceEpoch !== doubt.sourceEpoch ||
        message.targetEpoch !== doubt.targetEpoch ||
        Buffer.compare(message.signingRoot, doubt.signingRoot) !== 0
      );
    },
  };
}

const SLOT = 0;
const SOURCE = 1;
const TARGET = 2;
const COLUMNS = 3;
const NONE = -1;
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

  return {
    read(publicKey: PublicKeyHex): HighWaterMarks {
      const row = rows.get(publicKey);
      if (row === undefined) return { blockSlot: null, sourceEpoch: null, targetEpoch: null };
      const at = (column: number) => {
        const value = values[row + column];
        return value === undefined || value === NONE ? null : value;
      };
      return { blockSlot: at(SLOT), sourceEpoch: at(SOURCE), targetEpoch: at(TARGET) };
    },
    raise(publicKey: PublicKeyHex, column: number, value: number): void {
      const at = rowOf(publicKey) + column;
      if (value > (values[at] ?? NONE)) values[at] = value;
    },
  };
}
