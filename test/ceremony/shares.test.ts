// Threshold as a property, and the shares that are none.

import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { combineShares, splitSecret } from '../../ceremony/shares.ts';

const secrets = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes));
/** n keys, k of them, and an order to take them in. */
const splits = fc
  .integer({ min: 1, max: 9 })
  .chain((count) =>
    fc.tuple(
      fc.constant(count),
      fc.integer({ min: 1, max: count }),
      fc.shuffledSubarray([...Array(count).keys()], { minLength: count }),
    ),
  );

function pick(shares: readonly Buffer[], order: readonly number[], count: number): Buffer[] {
  return order.slice(0, count).map((at) => shares[at] ?? Buffer.alloc(0));
}

describe('threshold', () => {
  it('any k of n shares, in any order, give the secret', async () => {
    await fc.assert(
      fc.asyncProperty(secrets, splits, async (secret, [count, threshold, order]) => {
        const shares = await splitSecret(secret, count, threshold);
        expect(await combineShares(pick(shares, order, threshold))).toEqual(secret);
      }),
    );
  });

  it('k − 1 of them do not', async () => {
    await fc.assert(
      fc.asyncProperty(secrets, splits, async (secret, [count, threshold, order]) => {
        fc.pre(threshold > 1);
        const shares = await splitSecret(secret, count, threshold);
        const combined = await combineShares(pick(shares, order, threshold - 1));
        expect(combined === undefined || !combined.equals(secret)).toBe(true);
      }),
    );
  });

  it('of 255 keys, all of them work', async () => {
    const secret = randomBytes(32);
    expect(await combineShares(await splitSecret(secret, 255, 255))).toEqual(secret);
  });

  it('of one makes every share a copy, each its own to wipe', async () => {
    const secret = randomBytes(32);
    const shares = await splitSecret(secret, 3, 1);
    expect(shares).toEqual([secret, secret, secret]);
    shares[0]?.fill(0);
    expect(shares[1]).toEqual(secret);
  });

  it.each([
    [3, 0],
    [3, 4],
    [1, 2],
  ])('of %i shares cannot be %i', async (count, threshold) => {
    await expect(splitSecret(randomBytes(32), count, threshold)).rejects.toThrow(RangeError);
  });

  it('holds for a secret of 32 bytes only', async () => {
    await expect(splitSecret(randomBytes(31), 3, 2)).rejects.toThrow(RangeError);
  });
});

describe('shares are none when', () => {
  it('one of them lies at x = 0, where it would choose the secret alone', async () => {
    const [honest = Buffer.alloc(0)] = await splitSecret(randomBytes(32), 3, 2);
    const chosen = Buffer.concat([randomBytes(32), Buffer.from([0])]);
    expect(await combineShares([honest, chosen])).toBeUndefined();
    expect(await combineShares([chosen, honest])).toBeUndefined();
  });

  it('two of them lie at one x', async () => {
    const [share = Buffer.alloc(0)] = await splitSecret(randomBytes(32), 3, 2);
    expect(await combineShares([share, Buffer.from(share)])).toBeUndefined();
  });

  it.each([0, 1, 31, 32, 34])('one of them has %i bytes', async (length) => {
    const [share = Buffer.alloc(0)] = await splitSecret(randomBytes(32), 3, 2);
    expect(await combineShares([share, randomBytes(length)])).toBeUndefined();
  });

  it('the only one is not a whole secret', async () => {
    expect(await combineShares([])).toBeUndefined();
    expect(await combineShares([randomBytes(33)])).toBeUndefined();
  });
});
