// Shares of a key in the addon: any participants as many as the threshold sign as the whole key does, fewer do not, and
// each share's public key follows from the commitments. blst's own binding says what is right.

import { createHash, randomBytes } from 'node:crypto';
import { SecretKey, Signature, verify } from '@chainsafe/blst';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Addon, loadAddon } from '../../signer/native/load.ts';
import { addonForTests } from '../support/addon.ts';

const ROOT = createHash('sha256').update('a signing root').digest();
/** The group order of BLS12-381, minus one: the largest secret key. */
const LARGEST = Buffer.from('73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000', 'hex');
const INFINITY = Uint8Array.from([0xc0, ...Array.from({ length: 47 }, () => 0)]);

const sizes = fc
  .integer({ min: 2, max: 32 })
  .chain((participants) => fc.tuple(fc.integer({ min: 2, max: participants }), fc.constant(participants)));

let addon: Addon;

interface Split {
  readonly whole: SecretKey;
  readonly shares: readonly SecretKey[];
  readonly commitments: Uint8Array;
}

function split(secretKey: Uint8Array, threshold: number, participants: number): Split {
  const shares = new Uint8Array(participants * 32);
  const commitments = new Uint8Array(threshold * 48);
  addon.splitKey(secretKey, randomBytes((threshold - 1) * 48), shares, commitments);
  const shareAt = (index: number) => SecretKey.fromBytes(shares.subarray(32 * index, 32 * index + 32));
  const whole = SecretKey.fromBytes(secretKey);
  return { whole, commitments, shares: Array.from({ length: participants }, (_, index) => shareAt(index)) };
}

function combined({ shares }: Split, participantIds: readonly number[]): Buffer {
  const partials = participantIds.map((id) => shares[id - 1]?.sign(ROOT).toBytes() ?? new Uint8Array(96));
  const signature = Buffer.alloc(96);
  addon.combinePartials(Uint8Array.from(participantIds), Buffer.concat(partials), signature);
  return signature;
}

describe.skipIf(!addonForTests())('with the native addon', () => {
  beforeAll(() => {
    const loaded = loadAddon();
    if (loaded === undefined) throw new Error('the addon was there a moment ago');
    addon = loaded;
  });

  describe('a split key', () => {
    it('is signed with by any participants as many as the threshold, in any order, and by more', () => {
      fc.assert(
        fc.property(sizes, fc.infiniteStream(fc.nat()), ([threshold, participants], picks) => {
          const key = split(SecretKey.fromKeygen(randomBytes(32)).toBytes(), threshold, participants);
          const ids = Array.from({ length: participants }, (_, index) => index + 1);
          const order = ids.map((id) => ({ id, at: picks.next().value })).sort((a, b) => a.at - b.at);
          const expected = Buffer.from(key.whole.sign(ROOT).toBytes());
          expect(
            combined(
              key,
              order.slice(0, threshold).map(({ id }) => id),
            ),
          ).toEqual(expected);
          expect(combined(key, ids)).toEqual(expected);
        }),
        { numRuns: 30 },
      );
    });

    it('is not signed with by one participant less', () => {
      const key = split(SecretKey.fromKeygen(randomBytes(32)).toBytes(), 3, 4);
      expect(combined(key, [1, 4])).not.toEqual(Buffer.from(key.whole.sign(ROOT).toBytes()));
    });

    it('has a public key of each share that follows from the commitments, the first of which is its own', () => {
      const key = split(LARGEST, 5, 7);
      expect(Buffer.from(key.commitments.subarray(0, 48))).toEqual(Buffer.from(key.whole.toPublicKey().toBytes()));
      for (const [index, share] of key.shares.entries()) {
        const publicKey = Buffer.alloc(48);
        addon.sharePublicKey(key.commitments, index + 1, publicKey);
        expect(publicKey).toEqual(Buffer.from(share.toPublicKey().toBytes()));
      }
    });

    it('gives other shares each time', () => {
      const [one, other] = [split(LARGEST, 2, 2), split(LARGEST, 2, 2)];
      expect(one.shares[0]?.toBytes()).not.toEqual(other.shares[0]?.toBytes());
    });

    it('is one below the group order', () => {
      const [shares, commitments] = [new Uint8Array(64), new Uint8Array(96)];
      const order = Buffer.from(LARGEST);
      order[31] = 1;
      for (const key of [new Uint8Array(32), order]) {
        expect(() => addon.splitKey(key, randomBytes(48), shares, commitments)).toThrow(RangeError);
      }
    });

    it('has no coefficient that is zero, which would lower the threshold', () => {
      const zero = new Uint8Array(48);
      expect(() => addon.splitKey(LARGEST, zero, new Uint8Array(64), new Uint8Array(96))).toThrow(RangeError);
    });

    it.each([
      ['one share', 32, 48],
      ['a threshold of one', 64, 48],
      ['a threshold above the participants', 64, 144],
      ['more than 32 participants', 33 * 32, 96],
    ])('is not made with %s', (_, shares, commitments) => {
      const make = () => addon.splitKey(LARGEST, randomBytes(96), new Uint8Array(shares), new Uint8Array(commitments));
      expect(make).toThrow(TypeError);
    });
  });

  describe('the public key of a share', () => {
    let commitments: Uint8Array;
    beforeAll(() => {
      commitments = split(LARGEST, 2, 3).commitments;
    });
    const of = (points: Uint8Array, id: number) => () => addon.sharePublicKey(points, id, new Uint8Array(48));

    it('needs commitments that are points of the group, and not the point at infinity', () => {
      // x = 4 is on the curve, and not in the group (RFC 9380 §5: the cofactor of G1 is not 1)
      const outside = Buffer.alloc(48);
      outside[0] = 0x80;
      outside[47] = 4;
      for (const wrong of [INFINITY, new Uint8Array(48), outside]) {
        expect(of(Buffer.concat([commitments.subarray(0, 48), wrong]), 1)).toThrow(RangeError);
        expect(of(Buffer.concat([wrong, commitments.subarray(48)]), 1)).toThrow(RangeError);
      }
    });

    it('is of a participant from 1 to 32', () => {
      for (const id of [0, 33, 256, 1.5]) expect(of(commitments, id)).toThrow(TypeError);
      expect(of(commitments, 32)).not.toThrow();
    });
  });

  describe('partial signatures', () => {
    let key: Split;
    let partial: Buffer;
    beforeAll(() => {
      key = split(LARGEST, 2, 3);
      partial = Buffer.from(key.shares[0]?.sign(ROOT).toBytes() ?? []);
    });
    const combine = (ids: readonly number[], partials: Uint8Array) => () =>
      addon.combinePartials(Uint8Array.from(ids), partials, new Uint8Array(96));

    it('are of different participants, none of them zero', () => {
      expect(combine([1, 1], Buffer.concat([partial, partial]))).toThrow(RangeError);
      expect(combine([0, 1], Buffer.concat([partial, partial]))).toThrow(RangeError);
    });

    it('are points', () => {
      expect(combine([1, 2], Buffer.concat([partial, Buffer.alloc(96, 1)]))).toThrow(RangeError);
      expect(combine([1, 2], partial)).toThrow(TypeError);
    });

    it('of another root make a signature that does not verify', () => {
      const other = Buffer.from(key.shares[1]?.sign(Buffer.alloc(32)).toBytes() ?? []);
      const signature = new Uint8Array(96);
      addon.combinePartials(Uint8Array.from([1, 2]), Buffer.concat([partial, other]), signature);
      expect(verify(ROOT, key.whole.toPublicKey(), Signature.fromBytes(signature))).toBe(false);
    });
  });
});
