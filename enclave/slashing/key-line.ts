// Keys in the order of their arrival, each once. A Set keeps this order, too. But finding its first member means a walk
// over every place that was freed before it: 40 ms for 20,000 keys that come and go.

import type { PublicKeyHex } from './types.ts';

interface Place {
  readonly publicKey: PublicKeyHex;
  before: Place | undefined;
  after: Place | undefined;
}

export interface KeyLine {
  readonly size: number;
  /** The one that has waited longest. */
  readonly first: PublicKeyHex | undefined;
  /** A key that is in the line keeps its place. */
  add(publicKey: PublicKeyHex): void;
  /** @returns whether it was in the line */
  delete(publicKey: PublicKeyHex): boolean;
  clear(): void;
}

export function keyLine(): KeyLine {
  const places = new Map<PublicKeyHex, Place>();
  let first: Place | undefined;
  let last: Place | undefined;
  return {
    get size() {
      return places.size;
    },
    get first() {
      return first?.publicKey;
    },
    add(publicKey) {
      if (places.has(publicKey)) return;
      const place: Place = { publicKey, before: last, after: undefined };
      if (last === undefined) first = place;
      else last.after = place;
      last = place;
      places.set(publicKey, place);
    },
    delete(publicKey) {
      const place = places.get(publicKey);
      if (place === undefined) return false;
      if (place.before === undefined) first = place.after;
      else place.before.after = place.after;
      if (place.after === undefined) last = place.before;
      else place.after.before = place.before;
      return places.delete(publicKey);
    },
    clear() {
      places.clear();
      first = undefined;
      last = undefined;
    },
  };
}
