// An altered record never gives a master key, and a share that keys give for one another is found or counts once.

import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unwrapMasterKey } from '../../ceremony/key-record.ts';
import type { MasterKeyRecord } from '../../ceremony/record.ts';
import { keyArn } from '../config/loading.ts';
import { flip, forge, replaceShare } from './altered-records.ts';
import { ceremonyOf, custodyKeys, failed, refusal, succeeded, termsOf, wrapped } from './custody.ts';

describe('an altered record gives no master key:', () => {
  const ceremony = ceremonyOf({ threshold: 2, keys: 4 });

  async function altering(change: (record: MasterKeyRecord) => MasterKeyRecord) {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    return { refused: await refusal(change(record), ceremony, keys), keys };
  }

  it('an altered ciphertext, though enough other shares open', async () => {
    const { refused } = await altering((record) => replaceShare(record, 4, { ciphertext: randomBytes(61) }));
    expect(refused).toMatchObject({ refusal: 'binding_mismatch', startupFailure: 9 });
    expect(refused.message).toContain('the row was altered, or it was written under another ceremony key set');
    expect(refused.message).toContain('restore the row from a point-in-time recovery');
    expect(refused.keys.map(({ ok }) => ok)).toEqual([true, true, true, false]);
  });

  it('swapped shares, which the encryption context refuses too', async () => {
    const { refused } = await altering((record) => {
      const [first, second] = record.shares;
      if (first === undefined || second === undefined) throw new Error('there are four shares');
      const swapped = replaceShare(record, 1, { ciphertext: second.ciphertext });
      return replaceShare(swapped, 2, { ciphertext: first.ciphertext });
    });
    expect(refused).toMatchObject({ refusal: 'binding_mismatch' });
    expect(refused.keys.map(({ attempts }) => attempts[0]?.fault)).toEqual([
      'bad_ciphertext',
      'bad_ciphertext',
      undefined,
      undefined,
    ]);
  });

  it('a share of another record of the same ceremony', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    const other = await wrapped(randomBytes(32), ceremony, keys);
    const mixed = replaceShare(record, 2, { ciphertext: other.shares[1]?.ciphertext ?? Buffer.alloc(1) });
    expect(await refusal(mixed, ceremony, keys)).toMatchObject({ refusal: 'binding_mismatch', startupFailure: 9 });
  });

  it('the binding of another record', async () => {
    expect((await altering((record) => ({ ...record, binding: randomBytes(32) }))).refused).toMatchObject({
      refusal: 'binding_mismatch',
    });
  });

  it('a generation that is given out for another, whose encryption context the keys refuse', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    const later = ceremonyOf({ threshold: 2, keys: 4, generation: 2 });
    const refused = await refusal({ ...record, generation: 2 }, later, keys);
    expect(refused).toMatchObject({ refusal: 'below_threshold', startupFailure: 8 });
    expect(refused.message).toContain(
      'the ciphertext was not made by this key for this deployment, generation and share',
    );
  });

  it('a share at x = 0, with which one key alone would choose the master key', async () => {
    const keys = custodyKeys();
    const two = ceremonyOf({ threshold: 2, keys: 2 });
    const forged = await forge(
      { threshold: 2, generation: 1, shareAt: (secret) => Buffer.concat([secret, Buffer.from([0])]) },
      keys,
    );
    expect(await refusal(forged, two, keys)).toMatchObject({ refusal: 'binding_mismatch', startupFailure: 9 });
  });
});

describe('a wrong share that its key vouches for', () => {
  it('is found, named, and not used, when others suffice', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 5 }), async (threshold, bad) => {
        const ceremony = ceremonyOf({ threshold, keys: 5 });
        const keys = custodyKeys();
        const masterKey = randomBytes(32);
        const record = await wrapped(masterKey, ceremony, keys);
        keys.falsify(keyArn(bad), flip);
        const outcome = succeeded(await unwrapMasterKey(record, termsOf(ceremony), keys));
        expect(outcome.masterKey).toEqual(masterKey);
        expect(
          outcome.keys.flatMap(({ index, attempts }) => attempts.map(({ arn, fault }) => [index, arn, fault])),
        ).toEqual([[bad, keyArn(bad), 'wrong_share']]);
      }),
    );
  });

  it('is a binding mismatch when every share is needed', async () => {
    const ceremony = ceremonyOf({ threshold: 3, keys: 3 });
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    keys.falsify(keyArn(2), flip);
    expect(await refusal(record, ceremony, keys)).toMatchObject({ refusal: 'binding_mismatch', startupFailure: 9 });
  });
});

describe('shares that keys give for one another', () => {
  /** The shares of a new record, in the order of their keys, as the keys give them. */
  async function opened(threshold: number, count: number) {
    const ceremony = ceremonyOf({ threshold, keys: count });
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const record = await wrapped(masterKey, ceremony, keys);
    const shares: Buffer[] = [];
    for (const { index } of record.shares) {
      keys.falsify(keyArn(index), (share) => {
        shares[index - 1] = Buffer.from(share);
      });
    }
    succeeded(await unwrapMasterKey(record, termsOf(ceremony), keys)).masterKey.fill(0);
    /** From now on the key of each place gives the share of the place that is named there. */
    const give = (places: readonly number[]): void => {
      places.forEach((place, at) => {
        keys.falsify(keyArn(at + 1), (share) => void shares[place - 1]?.copy(share));
      });
    };
    return { masterKey, give, unwrap: () => unwrapMasterKey(record, termsOf(ceremony), keys) };
  }

  it('give the master key whatever their order: each carries its own point, and the binding proves what came out', async () => {
    const { masterKey, give, unwrap } = await opened(2, 3);
    for (const order of [
      [2, 1, 3],
      [3, 1, 2],
      [3, 2, 1],
    ]) {
      give(order);
      const outcome = succeeded(await unwrap());
      expect(outcome.masterKey).toEqual(masterKey);
      expect(outcome.keys.every(({ ok }) => ok)).toBe(true);
    }
  });

  it('count once: one share of every key is below the threshold', async () => {
    const { give, unwrap } = await opened(2, 3);
    give([2, 2, 2]);
    expect(failed(await unwrap())).toMatchObject({ refusal: 'binding_mismatch', startupFailure: 9 });
  });

  it.each([
    [[3, 2, 3], [3]],
    [[1, 2, 1], [3]],
    [[1, 1, 3], [1]],
  ])('serve once: keys that give %j are not three that serve', async (places, wrong) => {
    const { masterKey, give, unwrap } = await opened(2, 3);
    give(places);
    const outcome = succeeded(await unwrap());
    expect(outcome.masterKey).toEqual(masterKey);
    expect(outcome.keys.filter(({ ok }) => !ok).map(({ index }) => index)).toEqual(wrong);
  });

  it('with the threshold 1 are copies of the master key, and all of them serve', async () => {
    const { give, unwrap } = await opened(1, 3);
    give([2, 2, 1]);
    expect(succeeded(await unwrap()).keys.every(({ ok }) => ok)).toBe(true);
  });
});
