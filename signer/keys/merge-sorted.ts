// A long list is sorted in pieces, with turns of the event loop between.

import { setImmediate as nextTurn } from 'node:timers/promises';

const PIECE = 4096;

export function mergeSorted(a: readonly string[], b: readonly string[]): string[] {
  const merged: string[] = [];
  let i = 0;
  let j = 0;
  for (;;) {
    const x = a[i];
    const y = b[j];
    if (x === undefined) return merged.concat(b.slice(j));
    if (y === undefined) return merged.concat(a.slice(i));
    if (x < y) {
      merged.push(x);
      i += 1;
    } else {
      merged.push(y);
      j += 1;
    }
  }
}

export async function sortInPieces(values: readonly string[]): Promise<readonly string[]> {
  if (values.length <= PIECE) return [...values].sort();
  const half = values.length >> 1;
  const first = await sortInPieces(values.slice(0, half));
  await nextTurn();
  const second = await sortInPieces(values.slice(half));
  await nextTurn();
  return mergeSorted(first, second);
}
