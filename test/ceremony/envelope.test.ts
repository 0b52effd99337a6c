// The master key through its envelope: any k of n custody keys open it and k − 1 do not, an altered record never gives
// a master key, refusals say what to do, and no share outlives the call.

import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type KeyFault, shareContext } from '../../ceremony/custody-keys.ts';
import { deploymentOf } from '../../ceremony/deployment.ts';
import { unwrapMasterKey, wrapMasterKey } from '../../ceremony/envelope.ts';
import { bindRecord, type MasterKeyRecord } from '../../ceremony/record.ts';
import { splitSecret } from '../../ceremony/shares.ts';
import { keyArn, multiRegionArn } from '../config/loading.ts';
import {
  ceremonyOf,
  custodyKeys,
  DEPLOYMENT,
  failed,
  isWiped,
  refusal,
  succeeded,
  termsOf,
  wrapped,
  wrappedUnbound,
} from './custody.ts';

/** k of n, and which keys are lost. */
const losses = fc
  .integer({ min: 1, max: 7 })
  .chain((count) =>
    fc.tuple(
      fc.constant(count),
      fc.integer({ min: 1, max: count }),
      fc.subarray([...Array(count).keys()].map((at) => keyArn(at + 1))),
    ),
  );

describe('threshold', () => {
  it('the master key opens exactly when at least k of the n custody keys serve', async () => {
    await fc.assert(
      fc.asyncProperty(losses, async ([count, threshold, lost]) => {
        const ceremony = ceremonyOf({ threshold, keys: count });
        const keys = custodyKeys();
        const masterKey = randomBytes(32);
        const record = await wrapped(masterKey, ceremony, keys);
        for (const arn of lost) keys.lose(arn);
        const outcome = await unwrapMasterKey(record, termsOf(ceremony), keys);
        expect(outcome).toMatchObject(
          count - lost.length >= threshold
            ? { ok: true, masterKey }
            : { ok: false, refusal: 'below_threshold', startupFailure: 8 },
        );
        expect(outcome.keys.filter(({ ok }) => !ok).flatMap(({ arns }) => arns)).toEqual(lost);
      }),
    );
  });

  it('below it, the refusal gives the reason of each key', async () => {
    const ceremony = ceremonyOf({ threshold: 2, keys: 3 });
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    keys.lose(keyArn(1), 'disabled');
    keys.lose(keyArn(3), 'denied');
    const { message, keys: results } = await refusal(record, ceremony, keys);
    expect(message.split('\n')).toEqual([
      'the master key needs 2 of its 3 custody keys and 1 served:',
      `  key 1: ${keyArn(1)} disabled: enable it`,
      `  key 2 (${keyArn(2)}): served`,
      `  key 3: ${keyArn(3)} access denied: by the key policy, the role, or the attestation that the policy asks for`,
    ]);
    expect(results.map(({ attempts }) => attempts.map(({ fault }) => fault))).toEqual([['disabled'], [], ['denied']]);
  });

  it('met, the keys that did not serve are named all the same', async () => {
    const ceremony = ceremonyOf({ threshold: 2, keys: 3 });
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    keys.lose(keyArn(2), 'invalid_state');
    const { keys: results } = succeeded(await unwrapMasterKey(record, termsOf(ceremony), keys));
    expect(results.map(({ index, ok }) => [index, ok])).toEqual([
      [1, true],
      [2, false],
      [3, true],
    ]);
  });
});

describe('a record of the same generation is refused before any key is called when', () => {
  const base = ceremonyOf({ threshold: 2, keys: 3, generation: 4 });

  it.each([
    ['its threshold is downgraded', { threshold: 1, keys: 3 }, 'the threshold 2 where the ceremony says 1'],
    ['its threshold is raised', { threshold: 3, keys: 3 }, 'the threshold 2 where the ceremony says 3'],
    ['it has other keys', { threshold: 2, keys: [[keyArn(1)], [keyArn(2)], [keyArn(9)]] }, 'names other custody keys'],
    ['it has fewer keys', { threshold: 2, keys: 4 }, 'names other custody keys'],
    ['it has more keys', { threshold: 2, keys: 2 }, 'names other custody keys'],
  ])('%s', async (_, other, words) => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), base, keys);
    const calls = keys.asked.length;
    const refused = await refusal(record, ceremonyOf({ ...other, generation: 4 }), keys);
    expect(refused).toMatchObject({ refusal: 'other_ceremony', startupFailure: 9, keys: [] });
    expect(refused.message).toContain(words);
    expect(refused.message).toContain('a changed ceremony needs a higher generation');
    expect(keys.asked).toHaveLength(calls);
  });

  it('whoever holds one key states the threshold 1 and binds a master key of their own', async () => {
    const keys = custodyKeys();
    const forged = await forge({ threshold: 1, generation: 4, shareAt: (secret) => secret }, keys);
    expect(await refusal(forged, base, keys)).toMatchObject({ refusal: 'other_ceremony' });
  });

  it('the order of the entries alone is no difference', async () => {
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const record = await wrapped(masterKey, base, keys);
    const reordered = ceremonyOf({ threshold: 2, keys: [[keyArn(3)], [keyArn(1)], [keyArn(2)]], generation: 4 });
    expect(succeeded(await unwrapMasterKey(record, termsOf(reordered), keys)).masterKey).toEqual(masterKey);
  });
});

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

describe('rotation', () => {
  const old = ceremonyOf({ threshold: 2, keys: 3 });

  it('to other keys opens with the retired ones and wraps the same master key', async () => {
    const next = ceremonyOf({
      threshold: 2,
      keys: [[keyArn(3)], [keyArn(4)], [keyArn(5)]],
      generation: 2,
      retired: [[keyArn(1)], [keyArn(2)]],
    });
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const opened = succeeded(await unwrapMasterKey(await wrapped(masterKey, old, keys), termsOf(next), keys));
    expect(opened).toMatchObject({ masterKey, rotationDue: true });
    const rotated = succeeded(await unwrapMasterKey(await wrapped(opened.masterKey, next, keys), termsOf(next), keys));
    expect(rotated).toMatchObject({ masterKey, rotationDue: false });
  });

  it('from a lower threshold is refused unless the ceremony states it: one custody key must not become enough', async () => {
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const weak = ceremonyOf({ threshold: 1, keys: 3 });
    const next = ceremonyOf({ threshold: 2, keys: 3, generation: 2 });
    const record = await wrapped(masterKey, weak, keys);
    const refused = await refusal(record, next, keys);
    expect(refused).toMatchObject({ refusal: 'other_ceremony', startupFailure: 9 });
    expect(refused.message).toMatch(/set retired_kms_threshold to 1/);
    const stated = { ...next, retiredKmsThreshold: 1 };
    expect(succeeded(await unwrapMasterKey(record, termsOf(stated), keys))).toMatchObject({
      masterKey,
      rotationDue: true,
    });
  });

  it('away from a lost key works while k others serve', async () => {
    const next = ceremonyOf({
      threshold: 2,
      keys: [[keyArn(2)], [keyArn(3)], [keyArn(4)]],
      generation: 2,
      retired: [[keyArn(1)]],
    });
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const record = await wrapped(masterKey, old, keys);
    keys.lose(keyArn(1), 'not_found');
    const opened = succeeded(await unwrapMasterKey(record, termsOf(next), keys));
    expect(succeeded(await wrapMasterKey(opened.masterKey, termsOf(next), keys)).record.generation).toBe(2);
  });

  it('calls no key that is neither in use nor retired', async () => {
    const next = ceremonyOf({ threshold: 1, keys: [[keyArn(3)]], generation: 2, retired: [[keyArn(2)]] });
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), old, keys);
    const before = keys.asked.length;
    const { keys: results } = succeeded(await unwrapMasterKey(record, termsOf(next), keys));
    expect(keys.asked.slice(before)).toEqual([keyArn(2), keyArn(3)]);
    expect(results[0]?.attempts).toEqual([{ arn: keyArn(1), fault: 'outside_ceremony' }]);
  });

  it('never goes back: a ceremony behind the record is refused before any key is called', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremonyOf({ threshold: 2, keys: 3, generation: 7 }), keys);
    const before = keys.asked.length;
    const refused = await refusal(record, ceremonyOf({ threshold: 2, keys: 3, generation: 6 }), keys);
    expect(refused.refusal).toBe('generation_behind');
    expect(refused.message).toContain(
      'generation 7 and this signer has generation 6: give this signer the newer ceremony',
    );
    expect(keys.asked).toHaveLength(before);
  });
});

describe('deployments that share custody keys, threshold and generation', () => {
  const ceremony = ceremonyOf({ threshold: 2, keys: 3 });
  const ours = termsOf(ceremony);
  const others = [
    [
      'another id',
      deploymentOf(DEPLOYMENT.network, 'state-2'),
      'of the deployment "state-1" and this signer is of "state-2"',
    ],
    [
      'another network',
      deploymentOf(`0x${'00'.repeat(32)}`, DEPLOYMENT.id),
      'of the network with the genesis validators root 0x4b',
    ],
  ] as const;

  it.each(others)('%s: the record is refused before any key is called', async (_, deployment, words) => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    const calls = keys.asked.length;
    const refused = failed(await unwrapMasterKey(record, { ...ours, deployment }, keys));
    expect(refused).toMatchObject({ refusal: 'other_deployment', startupFailure: 9, keys: [] });
    expect(refused.message).toContain(words);
    expect(keys.asked).toHaveLength(calls);
  });

  it.each([...others, ['none', undefined, '']] as const)(
    '%s: no key opens a record that is given out for one of it',
    async (_, deployment) => {
      const keys = custodyKeys();
      const masterKey = randomBytes(32);
      const record = await wrapped(masterKey, ceremony, keys);
      // The worst case: whoever does it has the master key, so that even the share binding is right.
      const forged = bindRecord(masterKey, { ...record, deployment });
      const refused = failed(await unwrapMasterKey(forged, { ...ours, ...(deployment && { deployment }) }, keys));
      expect(refused).toMatchObject({ refusal: 'below_threshold', startupFailure: 8 });
      expect(refused.keys.flatMap(({ attempts }) => attempts.map(({ fault }) => fault))).toEqual(
        Array(3).fill('bad_ciphertext'),
      );
    },
  );

  it('a rotation keeps to its own deployment, too', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    const later = termsOf({ ...ceremony, generation: 2 }, { deployment: deploymentOf(DEPLOYMENT.network, 'state-2') });
    expect(failed(await unwrapMasterKey(record, later, keys))).toMatchObject({ refusal: 'other_deployment' });
  });
});

describe('a record that was written before records named a deployment', () => {
  const ceremony = ceremonyOf({ threshold: 2, keys: 3 });

  it('opens, and is said to be unbound', async () => {
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const record = await wrappedUnbound(masterKey, ceremony, keys);
    expect(succeeded(await unwrapMasterKey(record, termsOf(ceremony), keys))).toMatchObject({
      masterKey,
      bound: false,
    });
  });

  it('is refused where rows have to be bound, before any key is called, at this generation and at an earlier one', async () => {
    const keys = custodyKeys();
    const record = await wrappedUnbound(randomBytes(32), ceremony, keys);
    const calls = keys.asked.length;
    for (const generation of [1, 2]) {
      const terms = termsOf({ ...ceremony, generation }, { requireBound: true });
      const refused = failed(await unwrapMasterKey(record, terms, keys));
      expect(refused).toMatchObject({ refusal: 'unbound_record', startupFailure: 9, keys: [] });
      expect(refused.message).toContain('start once with a higher ceremony generation');
    }
    expect(keys.asked).toHaveLength(calls);
  });

  it('is wrapped anew under the deployment by a higher generation, and opens for no other signer then', async () => {
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const next = { ...ceremony, generation: 2 };
    const opened = succeeded(
      await unwrapMasterKey(await wrappedUnbound(masterKey, ceremony, keys), termsOf(next), keys),
    );
    expect(opened).toMatchObject({ masterKey, rotationDue: true, bound: false });
    const rotated = await wrapped(opened.masterKey, next, keys);
    expect(succeeded(await unwrapMasterKey(rotated, termsOf(next, { requireBound: true }), keys))).toMatchObject({
      masterKey,
      rotationDue: false,
      bound: true,
    });
  });
});

describe('wrapping', () => {
  it.each<KeyFault>(['denied', 'unreachable', 'outside_ceremony'])(
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

function flip(share: Buffer): void {
  share[0] = (share[0] ?? 0) ^ 1;
}

function replaceShare(
  record: MasterKeyRecord,
  index: number,
  members: { readonly ciphertext: Buffer },
): MasterKeyRecord {
  return {
    ...record,
    shares: record.shares.map((share) => (share.index === index ? { ...share, ...members } : share)),
  };
}

/** What one can do who may encrypt under key 1 and write the row: key 2 keeps a share of some other secret. */
async function forge(
  { threshold, generation, shareAt }: { threshold: number; generation: number; shareAt: (secret: Buffer) => Buffer },
  keys: ReturnType<typeof custodyKeys>,
): Promise<MasterKeyRecord> {
  const chosen = randomBytes(32);
  const honest = await splitSecret(randomBytes(32), 2, 2);
  const payloads = threshold === 1 ? [shareAt(chosen)] : [shareAt(chosen), honest[1] ?? Buffer.alloc(0)];
  const shares = await Promise.all(
    payloads.map(async (payload, at) => {
      const index = at + 1;
      const context = shareContext(DEPLOYMENT, generation, index);
      const answer = await keys.encryptShare(index, [keyArn(index)], payload, context);
      if (!answer.ok) throw new Error('the key serves');
      return { index, arns: [keyArn(index)], ciphertext: answer.bytes };
    }),
  );
  return bindRecord(chosen, { deployment: DEPLOYMENT, generation, threshold, shares });
}
