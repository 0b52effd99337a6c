// Wrapping the master key: what every custody key has to do, and that nothing secret outlives a call.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { CustodyKeyFault } from '../../ceremony/custody-keys.ts';
import { unwrapMasterKey, wrapMasterKey } from '../../ceremony/key-record.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import { ceremonyOf, custodyKeys, failed, isWiped, refusal, succeeded, termsOf, wrapped } from './custody.ts';

describe('wrapping', () => {
  it.each<CustodyKeyFault>(['denied', 'unreachable', 'outside_ceremony'])(
    'needs every custody key: one that is %s refuses it',
    async (fault) => {
      const keys = custodyKeys();
      keys.lose(keyArn(2), fault);
      const refused = failed(
        await wrapMasterKey(randomBytes(32), termsOf(ceremonyOf({ threshold: 1, keys: 3 })), keys),
      );
      expect(refused).toMatchObject({ refusal: 'key_refused_share', startupFailure: 8 });
      expect(refused.keys.map(({ ok }) => ok)).toEqual([true, false, true]);
    },
  );

  it('is refused when what was encrypted cannot be decrypted again by k keys', async () => {
    const keys = custodyKeys();
    const encryptOnly = {
      ...keys,
      decryptShare: async (
        index: number,
        arns: readonly string[],
        ciphertext: Buffer,
        context: Parameters<typeof keys.decryptShare>[3],
      ) =>
        index === 1
          ? keys.decryptShare(index, arns, ciphertext, context)
          : { ok: false as const, attempts: [{ arn: arns[0] ?? '', fault: 'denied' as const }] },
    };
    const masterKey = randomBytes(32);
    const refused = failed(await wrapMasterKey(masterKey, termsOf(ceremonyOf({ threshold: 2, keys: 3 })), encryptOnly));
    expect(refused).toMatchObject({ refusal: 'below_threshold', startupFailure: 8 });
    expect(
      succeeded(await wrapMasterKey(masterKey, termsOf(ceremonyOf({ threshold: 1, keys: 3 })), encryptOnly)).keys.map(
        ({ ok }) => ok,
      ),
    ).toEqual([true, false, false]);
  });

  it('keeps replicas sorted in the record and asks them in the order of the ceremony', async () => {
    const arns = [multiRegionArn(1, 'us-east-1'), multiRegionArn(1, 'eu-west-1')];
    const ceremony = ceremonyOf({ threshold: 1, keys: [arns] });
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    expect(record.shares[0]?.arns).toEqual(arns.toReversed());
    succeeded(await unwrapMasterKey(record, termsOf(ceremony), keys));
    expect(new Set(keys.asked)).toEqual(new Set([arns[0]]));
  });
});

describe('nothing secret outlives a call', () => {
  const ceremony = ceremonyOf({ threshold: 2, keys: 3 });

  it('shares are wiped after wrapping, and the master key stays the caller’s', async () => {
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const before = Buffer.from(masterKey);
    await wrapped(masterKey, ceremony, keys);
    expect(keys.seen).toHaveLength(6);
    expect(keys.seen.every(isWiped)).toBe(true);
    expect(masterKey).toEqual(before);
  });

  it.each([
    ['success', 0],
    ['too few keys', 2],
  ])('shares are wiped after unwrapping with %s', async (_, lost) => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    for (let index = 1; index <= lost; index++) keys.lose(keyArn(index));
    await unwrapMasterKey(record, termsOf(ceremony), keys);
    expect(keys.seen).toHaveLength(9 - lost);
    expect(keys.seen.every(isWiped)).toBe(true);
  });

  it('shares are wiped when the binding does not verify', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    await refusal({ ...record, binding: randomBytes(32) }, ceremony, keys);
    expect(keys.seen.every(isWiped)).toBe(true);
  });

  it('shares are wiped when a key throws, and the bug is not swallowed', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    const throwing: typeof keys = {
      ...keys,
      decryptShare: (index, ...rest) =>
        index === 2 ? Promise.reject(new Error('a bug')) : keys.decryptShare(index, ...rest),
    };
    await expect(unwrapMasterKey(record, termsOf(ceremony), throwing)).rejects.toThrow('a bug');
    expect(keys.seen.every(isWiped)).toBe(true);
  });
});
