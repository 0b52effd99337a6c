// What was in every Buffer and byte array when it was filled with zeros: so that a test can say of a secret, whose
// copies nobody hands out, that it was wiped.

import { vi } from 'vitest';

export interface WipedBytes {
  /** How many copies of these bytes were wiped since the recording began. */
  copiesOf(secret: Uint8Array | string): number;
}

/** Until vi.restoreAllMocks(). */
export function recordWiped(): WipedBytes {
  const wiped: string[] = [];
  for (const prototype of [Buffer.prototype, Uint8Array.prototype] as Uint8Array[]) {
    const { fill } = prototype;
    vi.spyOn(prototype, 'fill').mockImplementation(function (this: Uint8Array, value, ...range) {
      if (value === 0 && range.length === 0) wiped.push(hexOf(this));
      return fill.call(this, value, ...range);
    });
  }
  return { copiesOf: (secret) => wiped.filter((bytes) => bytes === hexOf(secret)).length };
}

function hexOf(bytes: Uint8Array | string): string {
  return Buffer.from(bytes as Uint8Array).toString('hex');
}
