// The key store on a real BLS core: what is found, what is listed, and when; what sealing leaves.

import { describe, expect, it } from 'vitest';
import { encodeHex } from '../../common/formats/hex.ts';
import type { LoadedKey } from '../../signer/keys/loaded-key.ts';
import { KeyStore } from '../../signer/keys/store.ts';
import type { SecretKeyVault } from '../../signer/keys/vault.ts';
import { testSecret, vaultOf } from '../support/keys.ts';
import { ascending, clock, core, publicKey, publicKeys, ROOT, store } from './store-set-up.ts';

describe('adding and removing', () => {
  it('finds a key that was added, with its source and time, and signs with its handle', async () => {
    const added = store.add(testSecret(1), 'filesystem');
    expect(added).toMatchObject({ outcome: 'added' });
    const key = store.find(publicKey(1)) as LoadedKey;
    expect(key).toMatchObject({ publicKey: publicKey(1), source: 'filesystem', loadedAt: 1_700_000_000 });
    expect(await core.sign(key.handle, ROOT, 'normal')).toHaveLength(96);
  });

  it('a duplicate keeps the first, says so, and leaves nothing of the second in the core', () => {
    store.add(testSecret(1), 'filesystem');
    const first = store.find(publicKey(1));
    const removed: number[] = [];
    const watched = watch(core, { removeKey: (handle) => removed.push(handle) });
    const second = new KeyStore({}, { vault: watched, clock });
    second.add(testSecret(1), 'memory');
    const again = second.add(testSecret(1), 'dynamodb');
    expect(again).toMatchObject({ outcome: 'duplicate', key: { source: 'memory' } });
    expect(removed).toHaveLength(1);
    expect(second.find(publicKey(1))?.source).toBe('memory');
    expect(second.countBySource()).toEqual({ filesystem: 0, dynamodb: 0, memory: 1 });
    expect(store.find(publicKey(1))).toBe(first);
  });

  it('says the public key of a secret that the core holds only meanwhile, and none once it is sealed', () => {
    const removed: number[] = [];
    const small = new KeyStore({}, { vault: watch(core, { removeKey: (handle) => removed.push(handle) }), clock });
    expect(small.publicKeyOf(testSecret(1))).toBe(publicKey(1));
    expect(removed).toHaveLength(1);
    expect(small.find(publicKey(1))).toBeUndefined();
    expect(small.publicKeyOf(new Uint8Array(32))).toBeUndefined();
    small.seal();
    expect(() => small.publicKeyOf(testSecret(1))).toThrow('sealed');
  });

  it('refuses a secret that is not the expected public key, and it never can be found', () => {
    expect(store.add(testSecret(1), 'dynamodb', publicKey(2))).toEqual({
      outcome: 'refused',
      reason: 'public_key_mismatch',
    });
    expect(store.find(publicKey(1))).toBeUndefined();
    expect(store.find(publicKey(2))).toBeUndefined();
    expect(store.add(testSecret(1), 'dynamodb', publicKey(1)).outcome).toBe('added');
  });

  it('says mismatch, not duplicate, when a loaded key comes under the name of another', () => {
    store.add(testSecret(1), 'filesystem');
    expect(store.add(testSecret(1), 'dynamodb', publicKey(2))).toMatchObject({ reason: 'public_key_mismatch' });
    expect(store.find(publicKey(1))?.source).toBe('filesystem');
  });

  it.each([
    ['zero', '00'.repeat(32)],
    ['the group order', '73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001'],
    ['all ones', 'ff'.repeat(32)],
  ])('refuses %s as a secret key', (_name, hex) => {
    expect(store.add(Buffer.from(hex, 'hex'), 'filesystem')).toEqual({
      outcome: 'refused',
      reason: 'invalid_secret_key',
    });
    expect(store.countBySource()).toEqual({ filesystem: 0, dynamodb: 0, memory: 0 });
  });

  it('takes the largest secret key there is', () => {
    const largest = Buffer.from('73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000000', 'hex');
    expect(store.add(largest, 'filesystem').outcome).toBe('added');
  });

  it('a removed key is not found any more before its secret is wiped', () => {
    let foundAtWipe: LoadedKey | undefined | 'never wiped' = 'never wiped';
    const watched: KeyStore = new KeyStore(
      {},
      { vault: watch(core, { removeKey: () => (foundAtWipe = watched.find(publicKey(1))) }), clock },
    );
    watched.add(testSecret(1), 'memory');
    expect(watched.remove(publicKey(1))).toMatchObject({ publicKey: publicKey(1) });
    expect(foundAtWipe).toBeUndefined();
    expect(watched.remove(publicKey(1))).toBeUndefined();
  });

  it('a removed key cannot sign with the handle it had', async () => {
    store.add(testSecret(1), 'memory');
    const handle = (store.remove(publicKey(1)) as LoadedKey).handle;
    await expect(core.sign(handle, ROOT, 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
  });

  it('refuses more keys than its limit', () => {
    const small = new KeyStore({ maximumKeys: 1 }, { vault: core, clock });
    small.add(testSecret(1), 'memory');
    const refused = { outcome: 'refused', reason: 'too_many_keys', publicKey: publicKey(2) };
    expect(small.add(testSecret(2), 'memory')).toEqual(refused);
    small.remove(publicKey(1));
    expect(small.add(testSecret(2), 'memory').outcome).toBe('added');
  });
});

describe('the list of public keys', () => {
  it('while the first load runs it is an error, never a shorter list, and loaded keys are found all the same', () => {
    store.add(testSecret(1), 'filesystem');
    expect(() => store.publicKeys()).toThrow(expect.objectContaining({ reason: 'starting' }));
    expect(store.find(publicKey(1))).toBeDefined();
    store.completeFirstLoad();
    expect(store.state).toBe('ready');
    expect(store.publicKeys()).toEqual([publicKey(1)]);
  });

  it('is ascending, and the same array until something changes', () => {
    for (const number of [3, 1, 4, 15, 9, 2, 6]) store.add(testSecret(number), 'filesystem');
    store.completeFirstLoad();
    const list = store.publicKeys();
    expect(list).toEqual(ascending(3, 1, 4, 15, 9, 2, 6));
    expect(store.publicKeys()).toBe(list);
    store.add(testSecret(5), 'memory');
    store.remove(publicKey(4));
    expect(store.publicKeys()).toEqual(ascending(3, 1, 15, 9, 2, 6, 5));
    expect(list).toEqual(ascending(3, 1, 4, 15, 9, 2, 6));
  });

  it('lists a key once that was removed and added again', () => {
    store.add(testSecret(1), 'memory');
    store.completeFirstLoad();
    expect(store.publicKeys()).toHaveLength(1);
    store.remove(publicKey(1));
    store.add(testSecret(1), 'memory');
    expect(store.publicKeys()).toEqual([publicKey(1)]);
  });

  it('agrees with find after any sequence of changes', () => {
    store.completeFirstLoad();
    let state = 12345;
    for (let step = 0; step < 2000; step++) {
      state = (state * 1103515245 + 12345) % 2 ** 31;
      const number = state % publicKeys.length;
      if (state % 3 === 0) store.remove(publicKey(number));
      else store.add(testSecret(number), 'memory');
      if (step % 7 !== 0) continue;
      expect(store.publicKeys()).toEqual(publicKeys.filter((key) => store.find(key) !== undefined).sort());
    }
  });
});

describe('sealing', () => {
  it('forgets every key, wipes the core and answers the list with an error', async () => {
    store.add(testSecret(1), 'memory');
    store.completeFirstLoad();
    const handle = (store.find(publicKey(1)) as LoadedKey).handle;
    store.seal();
    expect(store.find(publicKey(1))).toBeUndefined();
    expect(store.countBySource()).toEqual({ filesystem: 0, dynamodb: 0, memory: 0 });
    expect(() => store.publicKeys()).toThrow(expect.objectContaining({ reason: 'sealed' }));
    await expect(core.sign(handle, ROOT, 'normal')).rejects.toMatchObject({ reason: 'signing_unavailable' });
  });

  it('is for good: a load or refresh under way brings no key back', async () => {
    await store.batch(async (batch) => {
      batch.add(testSecret(1), 'dynamodb');
      store.seal();
      expect(batch.add(testSecret(2), 'dynamodb')).toEqual({ outcome: 'refused', reason: 'sealed' });
    });
    store.completeFirstLoad();
    expect(store.state).toBe('sealed');
    expect(store.add(testSecret(3), 'memory')).toEqual({ outcome: 'refused', reason: 'sealed' });
    for (const number of [1, 2, 3]) expect(store.find(publicKey(number))).toBeUndefined();
    expect(() => store.publicKeys()).toThrow(expect.objectContaining({ reason: 'sealed' }));
  });
});

it('names keys as the core computes them', () => {
  const { handle, publicKey: bytes } = core.addKey(testSecret(1));
  core.removeKey(handle);
  expect(encodeHex(bytes)).toBe(publicKey(1));
});

/** The core, with an eye on one of its calls. */
function watch(vault: SecretKeyVault, eye: { removeKey: (handle: number) => void }): SecretKeyVault {
  return {
    ...vaultOf(vault),
    removeKey: (handle) => {
      eye.removeKey(handle);
      vault.removeKey(handle);
    },
  };
}
