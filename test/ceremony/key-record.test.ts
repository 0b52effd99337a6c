// The master key through its envelope: any k of n custody keys open it and k − 1 do not, a record of another ceremony
// is refused before any key is called, and refusals say what to do.

import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unwrapMasterKey } from '../../ceremony/key-record.ts';
import { keyArn } from '../config/loading.ts';
import { forge, losses } from './altered-records.ts';
import { ceremonyOf, custodyKeys, refusal, succeeded, termsOf, wrapped } from './custody.ts';

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
