// Shares in the key store: verified against their commitments, held under the composite key, and a key in one form
// only.

import { aggregatePublicKeys, PublicKey } from '@chainsafe/blst';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KeyShare } from '../../signer/api/distributed.ts';
import type { BlsCore } from '../../signer/bls/bls.ts';
import { openBlsCore } from '../../signer/bls/open-either.ts';
import type { AddedKey } from '../../signer/keys/loaded-key.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import { addonForTests } from '../support/addon.ts';
import { type TestShare, testShare } from '../support/distributed.ts';
import { publicKeyOf, testSecret } from '../support/keys.ts';
import { recordingLog } from '../support/recording-log.ts';

const clock = { now: () => 0, monotonic: () => 0 };
const COMPOSITE = publicKeyOf(testSecret(1));

describe.skipIf(!addonForTests())('a share', () => {
  let core: BlsCore;
  let store: KeyStore;
  beforeEach(async () => {
    core = await openBlsCore({ prefer: 'native', cores: 1, log: recordingLog() });
    store = new KeyStore({}, { vault: core, clock });
  });
  afterEach(() => core.close());

  const add = ({ secretKey, share }: TestShare, changed: Partial<KeyShare> = {}): AddedKey =>
    store.add(secretKey, 'filesystem', { ...share, ...changed });

  it('is the composite key for all that asks for a key, and signs with its own secret', async () => {
    const given = testShare(1, 2);
    const added = add(given);
    expect(added).toMatchObject({ outcome: 'added', key: { publicKey: COMPOSITE, share: given.share } });
    store.completeFirstLoad();
    expect(store.publicKeys()).toEqual([COMPOSITE]);
    expect(store.find(given.share.publicKey)).toBeUndefined();
    expect(store.shareOf(COMPOSITE)).toEqual(given.share);
  });

  it('is known as a share while it is set aside, so that no list takes it for a whole key', () => {
    add(testShare(1, 2));
    store.setAside(COMPOSITE);
    expect([store.find(COMPOSITE), store.shareOf(COMPOSITE)?.participantId]).toEqual([undefined, 2]);
  });

  it('is refused when its secret is another one than its public key says', () => {
    const { share } = testShare(1, 2);
    const refused = { outcome: 'refused', reason: 'public_key_mismatch' };
    expect(store.add(testShare(1, 3).secretKey, 'memory', share)).toEqual(refused);
  });

  it('is refused when it does not fit the commitments', () => {
    const refused = { outcome: 'refused', reason: 'share_mismatch' };
    expect(add(testShare(1, 2), { participantId: 3 })).toEqual(refused);
    const { commitments } = testShare(1, 2, { set: 2 }).share;
    expect(add(testShare(1, 2), { commitments })).toEqual(refused);
    const noPoint = [...testShare(1, 2).share.commitments.slice(0, 2), `0x${'00'.repeat(48)}`];
    expect(add(testShare(1, 2), { commitments: noPoint })).toEqual(refused);
    expect(store.countBySource().filesystem).toBe(0);
  });

  it('of a key that is here whole is refused, and the other way round', () => {
    const refused = { outcome: 'refused', reason: 'held_otherwise', publicKey: COMPOSITE };
    store.add(testSecret(1), 'memory');
    expect(add(testShare(1, 2))).toEqual(refused);
    store.remove(COMPOSITE);
    expect(add(testShare(1, 2)).outcome).toBe('added');
    expect(store.add(testSecret(1), 'memory')).toEqual(refused);
    expect(store.shareOf(COMPOSITE)?.participantId).toBe(2);
  });

  it('is no whole key of its own public key beside itself, in either order', () => {
    const { secretKey, share } = testShare(1, 2);
    const refused = { outcome: 'refused', reason: 'held_otherwise' };
    add(testShare(1, 2));
    expect(store.add(secretKey, 'memory')).toEqual(refused);
    store.remove(COMPOSITE);
    expect(store.add(secretKey, 'memory')).toMatchObject({ outcome: 'added', key: { publicKey: share.publicKey } });
    expect(add(testShare(1, 2))).toEqual(refused);
  });

  it('is no share of a second key, whose commitments were made to fit its secret', () => {
    const second = publicKeyOf(testSecret(2));
    const negative = Buffer.from(second.slice(2), 'hex');
    negative.writeUInt8(negative.readUInt8(0) ^ 0x20); // the sign of a compressed point
    const points = [testShare(1, 1).share.publicKey, `0x${negative.toString('hex')}`];
    const commitments = [second, aggregatePublicKeys(points.map((point) => PublicKey.fromHex(point))).toHex()];
    const forged = { compositePublicKey: second, threshold: 2, participants: 3, commitments };
    add(testShare(1, 1));
    expect(add(testShare(1, 1), forged)).toEqual({ outcome: 'refused', reason: 'held_otherwise' });
    expect(add(testShare(1, 1)).outcome).toBe('duplicate');
    store.remove(COMPOSITE);
    expect(add(testShare(1, 1), forged).outcome).toBe('added');
  });

  it('beside another one of its key is refused: of another participant, or of another set', () => {
    add(testShare(1, 2));
    const others = [
      testShare(1, 3),
      testShare(1, 2, { set: 2 }),
      testShare(1, 2, { threshold: 4 }),
      { ...testShare(1, 2), share: { ...testShare(1, 2).share, participants: 5 } },
    ];
    for (const other of others) expect(add(other)).toMatchObject({ outcome: 'refused', reason: 'held_otherwise' });
    expect(add(testShare(1, 2))).toMatchObject({ outcome: 'duplicate', key: { share: { participantId: 2 } } });
  });
});

it.skipIf(!addonForTests())('the portable core takes no shares, and whole keys as ever', async () => {
  const core = await openBlsCore({ prefer: 'portable', cores: 1, log: recordingLog() });
  const store = new KeyStore({}, { vault: core, clock });
  const { secretKey, share } = testShare(1, 1);
  expect(store.add(secretKey, 'memory', share)).toEqual({ outcome: 'refused', reason: 'share_unsupported' });
  expect(store.add(testSecret(1), 'memory', COMPOSITE).outcome).toBe('added');
  await core.close();
});
