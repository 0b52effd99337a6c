// The master key's envelope from one ceremony to the next, and among deployments that share custody keys.

import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deploymentOf } from '../../ceremony/definition.ts';
import { unwrapMasterKey, wrapMasterKey } from '../../ceremony/key-record.ts';
import { bindRecord } from '../../ceremony/record.ts';
import { keyArn } from '../config/loading.ts';
import { ceremonyOf, custodyKeys, DEPLOYMENT, failed, refusal, succeeded, termsOf, wrapped } from './custody.ts';

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

  it.each(others)('%s: no key opens a record that is given out for one of it', async (_, deployment) => {
    const keys = custodyKeys();
    const masterKey = randomBytes(32);
    const record = await wrapped(masterKey, ceremony, keys);
    // The worst case: whoever does it has the master key, so that even the share binding is right.
    const forged = bindRecord(masterKey, { ...record, deployment });
    const refused = failed(await unwrapMasterKey(forged, { ...ours, deployment }, keys));
    expect(refused).toMatchObject({ refusal: 'below_threshold', startupFailure: 8 });
    expect(refused.keys.flatMap(({ attempts }) => attempts.map(({ fault }) => fault))).toEqual(
      Array(3).fill('bad_ciphertext'),
    );
  });

  it('a rotation keeps to its own deployment, too', async () => {
    const keys = custodyKeys();
    const record = await wrapped(randomBytes(32), ceremony, keys);
    const later = termsOf({ ...ceremony, generation: 2 }, { deployment: deploymentOf(DEPLOYMENT.network, 'state-2') });
    expect(failed(await unwrapMasterKey(record, later, keys))).toMatchObject({ refusal: 'other_deployment' });
  });
});
